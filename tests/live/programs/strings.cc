// Strings in arrays, behind pointers and references, and in vectors.
#include <string>
#include <vector>

struct Page {
  int number;
  std::string title;
  std::string lines[2];
  std::vector<std::string> words;
  const std::string& author;
  std::string* editor;
};

__attribute__((noinline)) int show(const Page& page, std::string* texts, const std::vector<std::string>& words,
                                   std::string& mutable_text) {
  asm volatile("" ::"r"(&page), "r"(texts), "r"(&words), "r"(&mutable_text) : "memory");
  return page.number;
}

__attribute__((noinline)) std::string* editor_of(const Page& page) {
  asm volatile("" ::"r"(&page) : "memory");
  return page.editor;
}

int main() {
  std::string author = "an author whose name is long", editor = "editor";
  const Page page{1, "title", {"line 0", "line 1"}, {"word 0", "a second word that is long"}, author, &editor};
  std::string texts[] = {"text 0", "text 1", "a third text that is long"};
  return show(page, texts, page.words, editor) - (editor_of(page) != nullptr);
}
