// What the static libraries of elfutils lack, and what they bring that espy does not use.
#include <search.h>

#include <cstddef>

using Compare = int (*)(const void*, const void*);
#define WEAK __attribute__((weak))  // gives way to the function of the library, if it has one

extern "C" {

// The search trees, for releases whose static libraries lack them (0.192: eu-search.o is in no archive,
// https://sourceware.org/bugzilla/show_bug.cgi?id=32293).
//
// Each function is the tsearch(3) function of its name on the tree's root, which is the first member of elfutils' own
// `search_tree` (lib/eu-search.h). elfutils also takes the tree's lock. Here there is none: espy uses one `Elf` or
// `Dwarf` in one thread at a time.
struct search_tree {
  void* root;
};

WEAK void* eu_tsearch(const void* key, search_tree* tree, Compare compare) {
  return tsearch(key, &tree->root, compare);
}
WEAK void* eu_tfind(const void* key, search_tree* tree, Compare compare) { return tfind(key, &tree->root, compare); }
WEAK void* eu_tdelete(const void* key, search_tree* tree, Compare compare) {
  return tdelete(key, &tree->root, compare);
}

WEAK void eu_tdestroy(search_tree* tree, void (*free_node)(void*)) {
  tdestroy(tree->root, free_node);
  tree->root = nullptr;
}

WEAK void eu_search_tree_init(search_tree* tree) { tree->root = nullptr; }
WEAK void eu_search_tree_fini(search_tree* tree, void (*free_node)(void*)) { eu_tdestroy(tree, free_node); }

// The compressor of zstd, 500 KB: elf_compress(3) of elfutils 0.189 and later has it, espy only decompresses.
// espy_link() puts these functions in its place (--wrap).
void* __wrap_ZSTD_createCCtx() { return nullptr; }
size_t __wrap_ZSTD_freeCCtx(void*) { return 0; }
size_t __wrap_ZSTD_compressStream2(void*, void*, void*, int) { return static_cast<size_t>(-1); }  // an error

}  // extern "C"
