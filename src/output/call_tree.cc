// Maps keyed by stacks as a tree for people: callers above what they call, the largest branch first.
//
//   @user_stacks: 1,234
//   100.0%  1,234  _start
//   100.0%  1,234  main
//    60.0%    740  |- work
//    40.0%    494  '- idle
//
// A frame with one callee that has all of its weight is followed by the callee without indentation. Branches below half
// a percent are one line, which tells how many they are and what they have.

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "output/forwarding_sink.h"
#include "output/profile_formats.h"
#include "output/sink.h"

namespace espy::output {

namespace {

constexpr double kLeastShare = 0.005;  // of the whole: smaller branches are one line
constexpr size_t kMostBranches = 20;   // of a frame; the others are in that line
constexpr size_t kMostIndent = 40;     // columns; what is deeper has no more
constexpr size_t kLeastName = 16;      // columns that a name has at least

// The terminals that have two columns for a character agree on these ranges: East Asian text and emoji.
bool is_wide(uint32_t code) {
  return (code >= 0x1100 && code < 0x1160) || (code >= 0x2e80 && code < 0xe000) || (code >= 0xf900 && code < 0xfb00) ||
         (code >= 0xfe30 && code < 0xfe70) || (code >= 0xff00 && code < 0xff61) || code >= 0x1f000;
}

uint32_t code_of(std::string_view character) {
  if (character.size() == 1) return static_cast<unsigned char>(character[0]);
  uint32_t out = static_cast<unsigned char>(character[0]) & (0xffu >> (character.size() + 1));
  for (const char c : character.substr(1)) out = out << 6 | (static_cast<unsigned char>(c) & 0x3f);
  return out;
}

// Returns the text in at most `columns` columns. What does not fit is `~`.
std::string cut_to(std::string_view text, size_t columns) {
  std::string out;
  size_t used = 0, end_of_fitting = 0;
  while (!text.empty()) {
    const std::string_view character = text.substr(0, std::max<size_t>(utf8_length(text), 1));
    const size_t width = is_wide(code_of(character)) ? 2 : 1;
    if (used + width > columns) return out.substr(0, end_of_fitting) + "~";
    used += width;
    out += character;
    if (used < columns) end_of_fitting = out.size();
    text.remove_prefix(character.size());
  }
  return out;
}

class TreeText {
 public:
  // `columns`: of a line; 0: any.
  TreeText(const CallTree& all, size_t columns) : all_(all), columns_(columns) {}

  std::string render() {
    branches(all_, "");
    return std::move(out_);
  }

 private:
  struct Branch {
    const FoldedFrame* frame = nullptr;
    const CallTree* tree = nullptr;
    uint64_t weight = 0;
    std::string name;  // if there is no frame
  };

  static double share(uint64_t part, uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }

  void line(uint64_t weight, const std::string& indent, std::string_view name) {
    const std::string numbers = fmt::format("{:5.1f}%  {:>{}}  ", 100 * share(weight, all_.total), with_commas(weight),
                                            with_commas(all_.total).size());
    const std::string shown =
        indent.size() > kMostIndent ? "..." + indent.substr(indent.size() - kMostIndent + 3) : indent;
    const size_t before = numbers.size() + shown.size();
    const size_t room = columns_ == 0 ? std::string::npos : std::max(kLeastName, columns_ - std::min(columns_, before));
    out_ += numbers + shown + cut_to(name, room) + "\n";
  }

  // Those of a frame, the largest first: what it calls, and itself if it has samples of its own as well.
  std::vector<Branch> branches_of(const CallTree& tree) const {
    std::vector<Branch> found;
    uint64_t below = 0;
    for (const auto& [frame, callee] : tree.callees) {
      found.push_back({&frame, &callee, callee.total, ""});
      add_weight(below, callee.total);
    }
    if (!found.empty() && below < tree.total) found.push_back({nullptr, nullptr, tree.total - below, "[itself]"});
    std::ranges::stable_sort(found, std::ranges::greater(), &Branch::weight);
    const auto is_small = [&](const Branch& each) { return share(each.weight, all_.total) < kLeastShare; };
    const auto first_small = std::ranges::find_if(found, is_small);
    const size_t kept = std::min<size_t>(kMostBranches, static_cast<size_t>(first_small - found.begin()));
    if (kept >= found.size()) return found;
    Branch rest;
    for (size_t i = kept; i < found.size(); ++i) add_weight(rest.weight, found[i].weight);
    rest.name = fmt::format("[{} smaller branch{}]", found.size() - kept, found.size() - kept == 1 ? "" : "es");
    found.resize(kept);
    found.push_back(std::move(rest));
    return found;
  }

  void branches(const CallTree& tree, const std::string& indent) {
    const std::vector<Branch> all = branches_of(tree);
    const bool forks = all.size() > 1;
    for (size_t i = 0; i < all.size(); ++i) {
      const bool is_last = i + 1 == all.size();
      const std::string mark = !forks ? "" : is_last ? "'- " : "|- ";
      line(all[i].weight, indent + mark, all[i].frame != nullptr ? folded_name(*all[i].frame) : all[i].name);
      if (all[i].tree != nullptr) chain(*all[i].tree, indent + (!forks ? "" : is_last ? "   " : "|  "));
    }
  }

  // Frames that have one callee each, without recursion: stacks can be deep.
  void chain(const CallTree& first, const std::string& indent) {
    const CallTree* tree = &first;
    while (tree->callees.size() == 1 && tree->callees.begin()->second.total == tree->total) {
      line(tree->total, indent, folded_name(tree->callees.begin()->first));
      tree = &tree->callees.begin()->second;
    }
    branches(*tree, indent);
  }

  const CallTree& all_;
  size_t columns_;
  std::string out_;
};

}  // namespace

std::string call_tree_text(const CallTree& all, size_t columns) { return TreeText(all, columns).render(); }

namespace {

// Text, except for maps with stacks.
class TreeSink final : public ForwardingSink {
 public:
  TreeSink(Writer& out, const TextStyle& style, std::unique_ptr<Sink> text)
      : ForwardingSink(*text), text_(std::move(text)), out_(out), style_(for_terminal(style, out)) {}

  void map(const MapView& map) override {
    if (!has_stacks(map)) return ForwardingSink::map(map);
    CallTree all;
    for (const FoldedStack& stack : collapse_stacks(map, style_)) all.add(stack.frames, stack.weight);
    const std::string sampled = map.seen_share < 1 ? " (sampled)" : "";
    out_.write(fmt::format("{}: {}{}\n", map.name, with_commas(all.total), sampled));
    out_.write(call_tree_text(all, columns()));
  }
  void end() override {}

 private:
  // Of a line of the terminal, which is the standard output; 0: the output is no terminal.
  size_t columns() const {
    winsize size = {};
    return out_.is_terminal() && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
  }

  std::unique_ptr<Sink> text_;
  Writer& out_;
  TextStyle style_;
};

std::unique_ptr<Sink> make_tree_sink(Writer& out, TextStyle style, Quiet quiet) {
  std::unique_ptr<Sink> text = find_sink("text")->create(out, style, quiet);
  return std::make_unique<TreeSink>(out, style, std::move(text));
}

}  // namespace

extern constexpr SinkRow kTreeSink = {.name = "tree",
                                      .doc = "maps keyed by stacks, as an indented tree; else as text",
                                      .has_text = true,
                                      .has_lines = true,
                                      .create = make_tree_sink};

}  // namespace espy::output
