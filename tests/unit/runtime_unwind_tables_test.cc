// Files that programs report as missing, and what is published of them. The machine is a model: it knows the mappings
// of this process from /proc.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "idle_machine.h"
#include "runtime/unwind_tables.h"
#include "symbols/symbols.h"

namespace espy::runtime {
namespace {

using program::MapId;
using program::ProgramId;
using program::UnwindFile;
using program::UnwindFileKey;
using program::UnwindKeyQuery;

UnwindFileKey key_of(const symbols::Mapping& mapping) {
  return {std::filesystem::file_size(mapping.path), mapping.inode, static_cast<uint32_t>(mapping.device), 7};
}

class ModelMachine final : public load::IdleMachine {
 public:
  MapId query;
  std::map<UnwindFileKey, UnwindFile> files;
  std::function<void()> on_run;  // before each run of the program that reads keys

  std::span<std::byte> memory(MapId map) override { return map == query ? std::span(query_) : std::span(cells_); }
  Status update(MapId, std::span<const std::byte> key, std::span<const std::byte> value) override {
    UnwindFileKey file_key;
    UnwindFile file;
    std::memcpy(&file_key, key.data(), sizeof(file_key));
    std::memcpy(&file, value.data(), sizeof(file));
    files[file_key] = file;
    return {};
  }
  Status run(ProgramId) override {
    if (on_run) on_run();
    UnwindKeyQuery query_now;
    std::memcpy(&query_now, query_.data(), sizeof(query_now));
    const auto mappings = symbols::read_mappings(static_cast<uint32_t>(::getpid()));
    const auto mapping = std::ranges::find(*mappings, query_now.address, &symbols::Mapping::start);
    if (mapping == mappings->end()) return fail("no such mapping");
    query_now.is_known = 1;
    query_now.key = key_of(*mapping);
    std::memcpy(query_.data(), &query_now, sizeof(query_now));
    return {};
  }

 private:
  std::vector<std::byte> cells_{8 << 20}, query_{sizeof(UnwindKeyQuery)};
};

class UnwindTablesTest : public testing::Test {
 protected:
  void SetUp() override {
    char directory[] = "/tmp/unwind_tables.XXXXXX";
    ASSERT_NE(::mkdtemp(directory), nullptr);
    directory_ = directory;
    path_ = directory_ / "program";
    std::filesystem::copy("/proc/self/exe", path_);
    program_.arch = &kernel::host_arch();
    program_.unwinding.cells = program_.maps.add({.name = "unwind_cells", .value_size = 8 << 20, .is_mmapable = true});
    program_.unwinding.more_cells = program_.maps.add({.name = "unwind_more", .max_entries = 4});
    program_.unwinding.files = program_.maps.add({.name = "unwind_files"});
    machine_.query = program_.maps.add({.name = std::string(program::kUnwindKeyName), .is_mmapable = true});
    program_.programs.add({.name = std::string(program::kUnwindKeyName)});
    tables_.emplace(machine_, program_);
    tables_->begin();
    machine_.files.clear();  // of the vDSO
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // The mapping with the code of this test.
  static symbols::Mapping own_mapping() {
    const auto mappings = symbols::read_mappings(static_cast<uint32_t>(::getpid()));
    return *std::ranges::find_if(
        *mappings, [](const symbols::Mapping& each) { return each.start <= address() && address() < each.end; });
  }
  static uint64_t address() { return reinterpret_cast<uintptr_t>(&key_of); }
  static bool add_missing(UnwindTables& tables, const UnwindFileKey& key) {
    return tables.add_missing(static_cast<uint32_t>(::getpid()), address(), key);
  }
  UnwindFileKey key_of_copy() const {
    struct stat status = {};
    EXPECT_EQ(::stat(path_.c_str(), &status), 0);
    return {static_cast<uint64_t>(status.st_size), status.st_ino, static_cast<uint32_t>(status.st_dev), 7};
  }

  std::filesystem::path directory_, path_;
  program::Program program_;
  ModelMachine machine_;
  std::optional<UnwindTables> tables_;
};

TEST_F(UnwindTablesTest, TheReportedFileHasATable) {
  const UnwindFileKey key = key_of(own_mapping());
  EXPECT_TRUE(add_missing(*tables_, key));
  EXPECT_EQ(machine_.files[key].has_table, 1U);
  EXPECT_EQ(tables_->path_of(key), own_mapping().path);
}

TEST_F(UnwindTablesTest, WhatIsMappedNowIsNotTheReportedFile) {
  const UnwindFileKey mapped = key_of(own_mapping());
  for (const UnwindFileKey& key :
       {UnwindFileKey{mapped.size_bytes + 1, mapped.inode, mapped.device, mapped.generation},
        UnwindFileKey{mapped.size_bytes, mapped.inode + 1, mapped.device, mapped.generation},
        UnwindFileKey{mapped.size_bytes, mapped.inode, mapped.device + 1, mapped.generation},
        UnwindFileKey{mapped.size_bytes, mapped.inode, mapped.device, mapped.generation + 1}}) {
    EXPECT_FALSE(add_missing(*tables_, key));
    EXPECT_EQ(tables_->path_of(key), std::nullopt);
  }
  EXPECT_TRUE(machine_.files.empty());
}

TEST_F(UnwindTablesTest, APathIsTheReportedFileOnlyWithItsKey) {
  UnwindFileKey key = key_of_copy();
  ++key.generation;
  tables_->add_missing(path_, key);
  EXPECT_TRUE(machine_.files.empty());
  --key.generation;
  tables_->add_missing(path_, key);
  EXPECT_EQ(machine_.files[key].has_table, 1U);
  EXPECT_EQ(tables_->path_of(key), path_);
}

TEST_F(UnwindTablesTest, AFileThatBecomesAnotherWhileItIsReadHasNoTable) {
  const UnwindFileKey key = key_of_copy();
  int runs = 0;
  machine_.on_run = [&] {
    if (++runs == 2) std::ofstream(path_, std::ios::app) << "more";
  };
  tables_->add_missing(path_, key);
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(machine_.files.empty());
}

TEST_F(UnwindTablesTest, ANameIsNotThatOfTheFileThatHasItNow) {
  const UnwindFileKey key = key_of_copy();
  tables_->add_missing(path_, key);
  EXPECT_EQ(tables_->path_of(key), path_);
  std::filesystem::rename(path_, directory_ / "old");
  std::filesystem::copy(directory_ / "old", path_);
  EXPECT_EQ(tables_->path_of(key), std::nullopt);
}

}  // namespace
}  // namespace espy::runtime
