#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "base/limits.h"
#include "symbols/demangle.h"

namespace espy::symbols {
namespace {

std::string name_of(std::string_view mangled) { return demangle(mangled, DemangleStyle::kName); }

TEST(Demangle, LeavesOtherNamesAlone) {
  for (const char* name :
       {"", "main", "_start", "_Z", "_R", "_Zzz", "__libc_start_main", "_RNvC1", "_RB_", "_RNvBa_"}) {
    EXPECT_EQ(demangle(name), name);
  }
}

TEST(Demangle, CppSignature) {
  EXPECT_EQ(demangle("_ZN2ns1fEi"), "ns::f(int)");
  EXPECT_EQ(demangle("_ZN2ns1SC1ERKS0_"), "ns::S::S(ns::S const&)");
  EXPECT_EQ(demangle("_ZNK2ns1S3getEv"), "ns::S::get() const");
  EXPECT_EQ(demangle("_ZN2ns5valueE"), "ns::value");
}

TEST(Demangle, CppNameHasNeitherParametersNorReturnType) {
  EXPECT_EQ(name_of("_ZN2ns1fEi"), "ns::f");
  EXPECT_EQ(name_of("_ZNK2ns1S3getEv"), "ns::S::get");
  EXPECT_EQ(name_of("_ZN2ns1gIiEEvT_"), "ns::g<int>");  // void ns::g<int>(int)
  EXPECT_EQ(name_of("_ZN12_GLOBAL__N_11fEv"), "(anonymous namespace)::f");
  EXPECT_EQ(name_of("_ZNK1FclEi"), "F::operator()");
  EXPECT_EQ(name_of("_ZlsR1FS0_"), "operator<<");  // operator<<(F&, F&)
  EXPECT_EQ(name_of("_ZN1FnwEm"), "F::operator new");
  EXPECT_EQ(name_of("_ZN1FcvbEv"), "F::operator bool");
  EXPECT_EQ(name_of("_Z1hPFviE"), "h");     // h(void (*)(int))
  EXPECT_EQ(name_of("_Z1fB5cxx11v"), "f");  // f[abi:cxx11]()
  EXPECT_EQ(name_of("_ZN2ns1fEi.cold"), "ns::f");
  EXPECT_EQ(name_of("_ZN2ns5valueE"), "ns::value");
}

TEST(Demangle, CppOverloadHasNoReturnType) {
  const auto overload = [](std::string_view mangled) { return demangle(mangled, DemangleStyle::kOverload); };
  EXPECT_EQ(overload("_ZN2ns1gIiEEvT_"), "ns::g<int>(int)");
  EXPECT_EQ(overload("_ZNK2ns1S3getEv"), "ns::S::get() const");
  EXPECT_EQ(overload("_ZN2ns5valueE"), "ns::value");
  EXPECT_EQ(overload("main"), "main");
}

TEST(Demangle, CppConversionToTemplate) { EXPECT_EQ(demangle("_ZN1AcvT_IiEI1VEEv"), "A::operator V<int><V>()"); }

// Returns the number of a substitution: "S_", "S0_", "S1_" ...
std::string substitution(int index) {
  constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string digits;
  for (int rest = index - 1; index > 0 && (rest > 0 || digits.empty()); rest /= 36)
    digits.insert(0, 1, kDigits[static_cast<size_t>(rest % 36)]);
  return "S" + digits + "_";
}

// A pointer to a member of C that is a C, to a member of that that is that ...
std::string doubling_type(int steps) {
  std::string out = std::string(static_cast<size_t>(steps), 'M') + "1C";
  for (int i = 1; i <= steps; ++i) out += substitution(i);
  return out;
}

// Each level doubles the time of GCC's demangler, before it has made any text.
TEST(Demangle, NamesMayTakeLong) {
  const std::string type = doubling_type(60);
  std::string conversion = "_ZN1Acv";
  for (int i = 0; i < 60; ++i) conversion += "T_Ih";
  for (const std::string& hostile :
       {"_Z1fIiEvDp" + type, "_Z1fIiEvDTspst" + type + "E", "_Z1fIiEvDTsZst" + type + "E", conversion + "EUv"})
    EXPECT_EQ(demangle(hostile), hostile) << hostile;
  EXPECT_EQ(demangle("_Z1fIiEvDp" + doubling_type(2)), "void f<int>((C C::* C C::*::*)...)");
}

// Stacks can have thousands of them.
TEST(Demangle, ManyNamesMayTakeLong) {
  constexpr std::chrono::seconds kMany(8);  // half of what they take without a limit for all
  std::thread([&] {                         // which has a limit of its own
    const std::string hostile = "_Z1fIiEvDp" + doubling_type(60);
    for (int i = 0; i < 3'000; ++i) EXPECT_EQ(demangle(hostile), hostile);
    EXPECT_LT(thread_cpu_time(), kMany);
    EXPECT_EQ(demangle("_ZN2ns1fEi"), "ns::f(int)");
  })
      .join();
}

// As in a file with thousands of them, of which stacks have a hundred each.
TEST(Demangle, ShortNamesThatBecomeLongAreFew) {
  // f(a<int, int>, b<a<int, int>, a<int, int> >, ...): each type is twice as long as the one before.
  const std::string doubling =
      "_Z1f1aIiiE1bIS0_S0_E1bIS2_S2_E1bIS4_S4_E1bIS6_S6_E1bIS8_S8_E1bISA_SA_E1bISC_SC_E1bISE_SE_E1bISG_SG_E1bISI_SI_E";
  const std::string rust = "_RNvC1a1b", cpp = "_ZN2ns1fEi";
  std::thread([&] {  // which has a limit of its own
    size_t sum = 0;
    for (int i = 0; i < 10'000; ++i) {
      const std::string text = demangle(doubling);
      if (text == doubling) break;
      sum += text.size();
    }
    EXPECT_GT(sum, 64U << 20);
    EXPECT_LT(sum, 256U << 20);
    EXPECT_EQ(demangle(rust), "a::b");
    EXPECT_EQ(demangle(cpp), "ns::f(int)");
  })
      .join();
  EXPECT_NE(demangle(doubling), doubling);
}

TEST(Demangle, LongNamesAreAllowedAgainLater) {
  constexpr LongNames::Moment kBegin{std::chrono::hours(1)};
  constexpr size_t kNameBytes = 100, kOrdinaryBytes = 29 * kNameBytes;
  LongNames names;
  EXPECT_EQ(names.most_bytes(kNameBytes, kBegin), kMaxDemangledBytes);
  for (int i = 0; i < 3000; ++i) names.count(kNameBytes, kMaxDemangledBytes, kBegin);
  EXPECT_LT(names.most_bytes(kNameBytes, kBegin), kMaxDemangledBytes);
  EXPECT_GE(names.most_bytes(kNameBytes, kBegin), kOrdinaryBytes);
  // After a second 16 names.
  const auto later = kBegin + std::chrono::seconds(1);
  int count = 0;
  for (; names.most_bytes(kNameBytes, later) == kMaxDemangledBytes; ++count)
    names.count(kNameBytes, kMaxDemangledBytes, later);
  EXPECT_GE(count, 15);
  EXPECT_LE(count, 17);
  // One each second, for a week.
  for (int i = 2; i < 7 * 24 * 3600; ++i) {
    ASSERT_EQ(names.most_bytes(kNameBytes, kBegin + std::chrono::seconds(i)), kMaxDemangledBytes) << i;
    names.count(kNameBytes, kMaxDemangledBytes, kBegin + std::chrono::seconds(i));
  }
}

TEST(Demangle, RustLegacy) {
  EXPECT_EQ(demangle("_ZN4core3fmt9Formatter12pad_integral17h1234567890abcdefE"), "core::fmt::Formatter::pad_integral");
  EXPECT_EQ(demangle("_ZN42_$LT$$RF$T$u20$as$u20$core..fmt..Debug$GT$3fmt17habcdefabcdefabcdE.llvm.123"),
            "<&T as core::fmt::Debug>::fmt");
  EXPECT_EQ(demangle("_ZN1a4main28_$u7b$$u7b$closure$u7d$$u7d$17he28cf04776b6777bE"), "a::main::{{closure}}");
  EXPECT_EQ(demangle("_ZN1a13gr$uf6$$udf$e10stra$udf$e17h967c84ad7ecef4f5E"), "a::größe::straße");
  EXPECT_EQ(demangle("_ZN3foo3bar17h1234567890abcdefE.cold"), "foo::bar.cold");
  // Sixteen hex digits behind an h make a hash; anything else is C++.
  EXPECT_EQ(demangle("_ZN3foo3bar17h1234567890abcdeXEv"), "foo::bar::h1234567890abcdeX()");
}

TEST(Demangle, RustV0) {
  EXPECT_EQ(demangle("_RNvNtCs1234_7mycrate3foo3bar"), "mycrate::foo::bar");
  EXPECT_EQ(demangle("_RNvNtCs1234_7mycrate3foo3bar.llvm.9D1C9369"), "mycrate::foo::bar");
  EXPECT_EQ(demangle("_RINvNtC3std3mem8align_ofdE"), "std::mem::align_of::<f64>");
  EXPECT_EQ(demangle("_RNCNvC4bulk4main0"), "bulk::main::{closure#0}");
  EXPECT_EQ(demangle("_RNCNvC4bulk4mains_0"), "bulk::main::{closure#1}");
  EXPECT_EQ(demangle("_RNvMC1aNtB2_1S3new"), "<a::S>::new");
  EXPECT_EQ(demangle("_RNvXC1aNtB2_1SNtNtC4core3fmt5Debug3fmt"), "<a::S as core::fmt::Debug>::fmt");
  EXPECT_EQ(demangle("_RINvC1a4holdDNtNtC4core3fmt5DebugNtNtBf_6marker4SendEL_E"),
            "a::hold::<dyn core::fmt::Debug + core::marker::Send>");
  EXPECT_EQ(demangle("_RINvC1a4holdDNtNtNtNtC4core4iter6traits8iterator8Iteratorp4ItemhEL_E"),
            "a::hold::<dyn core::iter::traits::iterator::Iterator<Item = u8>>");
  EXPECT_EQ(demangle("_RINvC1a4holdFG_RL0_eERL0_eE"), "a::hold::<for<'a> fn(&'a str) -> &'a str>");
  EXPECT_EQ(demangle("_RINvC1a4holdFUKCPhOaEbE"), "a::hold::<unsafe extern \"C\" fn(*const u8, *mut i8) -> bool>");
  EXPECT_EQ(demangle("_RINvC1a1fTAdj3_ShTuEEE"), "a::f::<([f64; 3], [u8], ((),))>");
  EXPECT_EQ(demangle("_RINvC1a1fKj7_Kb1_Kc78_Kin2a_KpE"), "a::f::<7, true, 'x', -42, _>");
  EXPECT_EQ(demangle("_RNvC1au9gre_6ka8l"), "a::grüße");
}

// A back reference to an offset from the byte after `_R`.
std::string back_reference(size_t offset) {
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string digits = "_";
  if (offset == 0) return "B_";
  for (size_t rest = offset - 1; rest > 0 || digits.size() == 1; rest /= 62) digits.insert(0, 1, kDigits[rest % 62]);
  return "B" + digits;
}

// Each tuple refers twice to the one before, so the text doubles at each step.
std::string doubling_tuples(int steps) {
  std::string out = "INvC1a1f";
  size_t last = out.size();
  out += "TuuE";
  for (int i = 0; i < steps; ++i) {
    const size_t here = out.size();
    out += "T" + back_reference(last) + back_reference(last) + "E";
    last = here;
  }
  return "_R" + out + "E";
}

// In paths that are not printed.
TEST(Demangle, RustIdentifiersMayBeReadAgainAndAgain) {
  for (const std::string& identifier : {"u256_" + std::string(256, 'a'), "30000_" + std::string(30'000, 'a')}) {
    std::string name = "_RINvC1a1fMC" + identifier + "u";
    EXPECT_EQ(demangle(name + "E"), "a::f::<<()>>");
    for (int i = 0; i < 8000; ++i) name += back_reference(8);
    EXPECT_EQ(demangle(name + "E"), name + "E") << identifier.substr(0, 40);
  }
}

TEST(Demangle, HostileRustIsRefusedQuickly) {
  EXPECT_EQ(demangle(doubling_tuples(1)), "a::f::<((), ()), (((), ()), ((), ()))>");
  // A silent path (of the impl) that is read again by each of many references to it.
  std::string repeated = "INvC1a1fMC1aT" + std::string(30000, 'u') + "Eu";
  for (int i = 0; i < 8000; ++i) repeated += back_reference(8);
  for (const std::string& hostile :
       {doubling_tuples(60), "_R" + repeated + "E", "_RINvC1a1f" + std::string(100000, 'R') + "uE",
        "_RNvC1au200000" + std::string(200000, 'b'), "_RNvC1au60000" + std::string(60000, 'b'),
        "_RNvC1a1048576" + std::string(1048576, 'x'), std::string("_RINvC1a1fFGzzzzz_uEuE"),
        std::string("_RNvC999999999999999999999991a1f")})
    EXPECT_EQ(demangle(hostile), hostile) << hostile.substr(0, 40);
}

}  // namespace
}  // namespace espy::symbols
