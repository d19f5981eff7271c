#include "lower/scope.h"

#include <utility>

namespace espy::lower {

void Scope::with(Activation& activation, const std::function<void()>& body) {
  Activation* outer = std::exchange(activation_, &activation);
  body();
  activation_ = outer;
}

}  // namespace espy::lower
