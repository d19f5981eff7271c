// The encoding of BPF instructions: one constant per field, with the names of the kernel's documentation
// (Documentation/bpf/standardization/instruction-set.rst).
#pragma once

#include <cstdint>

namespace espy::bpf {

// Low three bits: the class.
inline constexpr uint8_t kLd = 0x00, kLdx = 0x01, kSt = 0x02, kStx = 0x03, kAlu32 = 0x04, kJmp = 0x05, kJmp32 = 0x06,
                         kAlu64 = 0x07;
constexpr uint8_t class_of(uint8_t code) { return code & 0x07; }

// Arithmetic and jumps: the source of the second operand.
inline constexpr uint8_t kImm = 0x00, kReg = 0x08;

// Arithmetic: high four bits.
inline constexpr uint8_t kAdd = 0x00, kSub = 0x10, kMul = 0x20, kDiv = 0x30, kOr = 0x40, kAnd = 0x50, kLsh = 0x60,
                         kRsh = 0x70, kNeg = 0x80, kMod = 0x90, kXor = 0xa0, kMov = 0xb0, kArsh = 0xc0, kEnd = 0xd0;

// Jumps: high four bits.
inline constexpr uint8_t kJa = 0x00, kJeq = 0x10, kJgt = 0x20, kJge = 0x30, kJset = 0x40, kJne = 0x50, kJsgt = 0x60,
                         kJsge = 0x70, kCall = 0x80, kExit = 0x90, kJlt = 0xa0, kJle = 0xb0, kJslt = 0xc0, kJsle = 0xd0,
                         kJcond = 0xe0;
constexpr uint8_t operation_of(uint8_t code) { return code & 0xf0; }

// Memory: bits 3-4 the size, bits 5-7 the mode.
inline constexpr uint8_t kWord = 0x00, kHalf = 0x08, kByte = 0x10, kDouble = 0x18;
inline constexpr uint8_t kModeImm = 0x00, kModeMem = 0x60, kModeMemSigned = 0x80, kModeAtomic = 0xc0;
constexpr uint8_t size_of(uint8_t code) { return code & 0x18; }
constexpr uint8_t mode_of(uint8_t code) { return code & 0xe0; }

constexpr uint8_t size_code(unsigned bytes) {
  return bytes == 1 ? kByte : bytes == 2 ? kHalf : bytes == 4 ? kWord : kDouble;
}
constexpr unsigned size_bytes(uint8_t code) {
  return size_of(code) == kByte ? 1 : size_of(code) == kHalf ? 2 : size_of(code) == kWord ? 4 : 8;
}

// Atomic operations, encoded in imm; with kFetch the source register receives the old value.
inline constexpr int32_t kFetch = 0x01, kAtomicAdd = 0x00, kAtomicOr = 0x40, kAtomicAnd = 0x50, kAtomicXor = 0xa0,
                         kXchg = 0xe0 | kFetch, kCmpxchg = 0xf0 | kFetch, kLoadAcquire = 0x100, kStoreRelease = 0x110;

inline constexpr uint8_t kLdImm64 = kLd | kDouble | kModeImm;  // takes two instructions

// Source register field of kLdImm64: the meaning of imm.
inline constexpr uint8_t kPseudoMapFd = 1, kPseudoMapValue = 2, kPseudoBtfId = 3, kPseudoFunction = 4,
                         kPseudoMapIndex = 5, kPseudoMapIndexValue = 6;
// Source register field of a call: the kind of callee.
inline constexpr uint8_t kCallHelper = 0, kCallFunction = 1, kCallKfunc = 2;

inline constexpr int32_t kStackLimitBytes = 512;

}  // namespace espy::bpf
