// The readers of files that espy finds (programs, the kernel's tables, maps of processes), and of records.
#include "reader.h"

namespace espy::fuzz {

std::span<const Reader> readers() {
  static constexpr Reader kReaders[] = {{"archive", run_archive},
                                        {"btf", run_btf},
                                        {"c_header", run_c_header},
                                        {"demangle", run_demangle},
                                        {"dwarf", run_dwarf},
                                        {"dwp", run_dwp},
                                        {"eh_frame", run_eh_frame},
                                        {"elf", run_elf},
                                        {"go_functions", run_go_functions},
                                        {"http", run_http},
                                        {"instructions", run_instructions},
                                        {"json", run_json},
                                        {"ld_cache", run_ld_cache},
                                        {"lsp", run_lsp},
                                        {"perf_map", run_perf_map},
                                        {"proc_text", run_proc_text},
                                        {"recording", run_recording},
                                        {"records", run_records},
                                        {"tar", run_tar},
                                        {"text", run_text},
                                        {"tool", run_tool},
                                        {"tracefs", run_tracefs},
                                        {"usdt", run_usdt}};
  return kReaders;
}

}  // namespace espy::fuzz
