// Makes one visitor of several lambdas.
#pragma once

namespace espy::lower {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

}  // namespace espy::lower
