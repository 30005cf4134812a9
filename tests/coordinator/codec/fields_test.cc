#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "coordinator/codec/cbor_reader.h"
#include "coordinator/codec/cbor_writer.h"
#include "coordinator/codec/document.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/record_fields.h"
#include "tests/support/filled.h"

namespace tactus::codec {
namespace {

using nlohmann::json;

// The number of fields of an aggregate: how many initialisers it takes, one a field.
struct Anything {
  template <typename T>
  operator T() const;
};
template <std::size_t>
using AnythingAt = Anything;
template <typename T, std::size_t... I>
constexpr bool Takes(std::index_sequence<I...>) {
  return requires { T{AnythingAt<I>{}...}; };
}
template <typename T, std::size_t N = 0>
constexpr std::size_t FieldCount() {
  if constexpr (Takes<T>(std::make_index_sequence<N + 1>{})) {
    return FieldCount<T, N + 1>();
  } else {
    return N;
  }
}

// Notes which fields were named, and by which keys.
struct Notes {
  template <typename T>
  void operator()(const char* key, const T& value) {
    keys.insert(key);
    fields.insert(&value);
  }
  std::set<std::string> keys;
  std::set<const void*> fields;
};

// What is wrong with a document; null: it was read.
template <typename T>
const char* Read(const json& document, T& value) {
  const std::string bytes = Pack(document);
  CborReader reader(bytes);
  reader.Read(value);
  return reader.Finish();
}

template <typename T>
class FieldsTest : public testing::Test {};

template <typename Variant>
struct AlternativesOf;
template <typename... Ts>
struct AlternativesOf<std::variant<Ts...>> {
  using Tuple = std::tuple<Ts...>;
};
template <typename Tuple>
struct TestTypes;
template <typename... Ts>
struct TestTypes<std::tuple<Ts...>> {
  using Types = testing::Types<Ts...>;
};
template <typename Variant>
using Alternatives = typename AlternativesOf<Variant>::Tuple;

using Records =
    std::tuple<policies::Report, policies::Decision, policies::PlannerOptions, job::DecisionRecord,
               job::JobSettings, job::DeviceRecord, job::NodeTraits, job::NodeRecord,
               job::MemoryRecord, job::PriorRecord, job::MemberRecord, job::ArtifactRecord,
               job::CheckpointRecord, job::Suspension, job::FinishedMember, job::EndingRecord,
               job::ResultRecord, job::WorkerProgress, job::Progress, job::JobRecord,
               job::RoundRecord>;
using All = decltype(std::tuple_cat(
    std::declval<Records>(), std::declval<Alternatives<job::ToWorker>>(),
    std::declval<Alternatives<job::FromWorker>>(), std::declval<Alternatives<job::Event>>(),
    std::declval<Alternatives<job::Action>>()));
TYPED_TEST_SUITE(FieldsTest, TestTypes<All>::Types);

TYPED_TEST(FieldsTest, EveryFieldHasAKeyOfItsOwn) {
  Notes notes;
  const TypeParam record{};

  Fields(notes, record);

  EXPECT_EQ(notes.fields.size(), FieldCount<TypeParam>());
  EXPECT_EQ(notes.keys.size(), FieldCount<TypeParam>());
  EXPECT_FALSE(notes.keys.contains("kind") && kKind<TypeParam> != nullptr);
}

TYPED_TEST(FieldsTest, EveryFieldComesBack) {
  const json expected = Document(Filled<TypeParam>());

  TypeParam found;
  ASSERT_EQ(Read(expected, found), nullptr);
  EXPECT_EQ(Pack(Document(found)), Pack(expected));
  if (FieldCount<TypeParam>() > 0) {
    EXPECT_NE(Pack(Document(TypeParam{})), Pack(expected));
  }
}

TYPED_TEST(FieldsTest, TheLibraryWritesTheSameBytes) {
  const TypeParam empty{}, filled = Filled<TypeParam>();

  EXPECT_EQ(CborWriter::Document(empty), Pack(Document(empty)));
  EXPECT_EQ(CborWriter::Document(filled), Pack(Document(filled)));
}

TEST(DocumentTest, NumbersThatAreNotFiniteHaveTheLibrarysBytesAndComeBack) {
  const double infinity = std::numeric_limits<double>::infinity();
  const policies::Report report{
      .loss_sum = std::nan(""), .compute_seconds = infinity, .blocked_seconds = -infinity};
  const job::Event event =
      job::WorkerSaid{.message = job::ReportMessage{.generation = 3, .report = report}};

  EXPECT_EQ(CborWriter::Document(event), Pack(Document(event)));
  policies::Report found;
  EXPECT_EQ(Read(Document(report), found), nullptr);
  EXPECT_TRUE(std::isnan(found.loss_sum));
  EXPECT_EQ(found.compute_seconds, infinity);
  EXPECT_EQ(found.blocked_seconds, -infinity);
}

// Encodes, decodes and encodes again each alternative of a variant.
template <typename Variant, typename... Ts>
void ExpectAlternativesComeBack(std::tuple<Ts...>) {
  std::set<std::string> kinds;
  const auto expect = [&]<typename T>(const T& one) {
    const json expected = Document(Variant(one));
    Variant found;
    EXPECT_EQ(Read(expected, found), nullptr);
    EXPECT_TRUE(std::holds_alternative<T>(found)) << kKind<T>;
    EXPECT_EQ(Pack(Document(found)), Pack(expected)) << kKind<T>;
    kinds.insert(kKind<T>);
  };
  (expect(Filled<Ts>()), ...);
  EXPECT_EQ(kinds.size(), sizeof...(Ts));
}

TEST(VariantFieldsTest, EveryAlternativeComesBackAsItself) {
  ExpectAlternativesComeBack<job::ToWorker>(Alternatives<job::ToWorker>());
  ExpectAlternativesComeBack<job::FromWorker>(Alternatives<job::FromWorker>());
  ExpectAlternativesComeBack<job::Event>(Alternatives<job::Event>());
  ExpectAlternativesComeBack<job::Action>(Alternatives<job::Action>());
}

TEST(VariantFieldsTest, AnUnknownKindIsDamage) {
  for (const json& map : {json{{"kind", "from_the_future"}}, json::object(), json(3)}) {
    job::Event event;
    EXPECT_NE(Read(map, event), nullptr) << map.dump();
  }
}

}  // namespace
}  // namespace tactus::codec
