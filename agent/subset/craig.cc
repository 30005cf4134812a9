#include "agent/subset/craig.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "agent/engine/samples/permutation.h"
#include "agent/subset/facility_location.h"
#include "agent/subset/piece_picks.h"
#include "agent/subset/quotas.h"
#include "agent/subset/weights.h"
#include "base/check.h"
#include "base/rng.h"

namespace tactus::subset {
namespace {

using collective::Completion;
using collective::Progress;

// Of the samples without a proxy: above it something is wrong with the parameters.
constexpr double kExcludedMax = 0.01;
constexpr std::uint64_t kCountMax = 1u << 24;  // float32 counts as far

// A pick on its way: its sample in two halves, what it stands for, and its proxy where one member
// is to pick among all.
constexpr std::size_t kPickWords = 3;

// A class as all members know it.
struct Class {
  std::vector<std::uint64_t> sizes{};  // by member
  std::uint64_t size = 0;              // of all
  std::uint64_t quota = 0;
  PiecePicks picks{};
};

struct Pick {
  std::uint64_t sample = 0;
  std::uint64_t weight = 0;
  std::vector<float> proxy{};  // where it is needed
};

class Selection {
 public:
  Selection(const Proxies& own, const SelectionOptions& options, collective::Transport& transport,
            const std::function<void()>& beside)
      : own_(own),
        options_(options),
        transport_(transport),
        beside_(beside),
        piece_max_(PieceMaxOf(own.width)),
        member_(static_cast<std::size_t>(transport.rank())),
        members_(static_cast<std::size_t>(transport.size())),
        of_class_(own.class_count) {
    for (std::size_t i = 0; i < own.samples.size(); ++i) of_class_[own.classes[i]].push_back(i);
  }

  Selected Run() {
    if (Count() && Plan() && PickOwn() && Gather() && PickAgain() && Assign()) Make();
    return std::move(selected_);
  }

 private:
  // Whether it went through; else the group is lost.
  bool Wait(const Completion& completion) {
    if (completion.progress == Progress::kDone) return true;
    selected_.lost = completion.reason;
    return false;
  }
  bool Sum(std::span<float> values) { return Wait(transport_.StartAllReduceSum(values)->Wait()); }

  // Whether to compute on.
  bool GoOn() {
    if (beside_) beside_();
    // Not at the end, which may be far: the others await this member's word of it.
    const std::vector<int> gone = transport_.failed();
    if (gone.empty()) return true;
    selected_.lost = "rank " + std::to_string(gone.front()) + ": closed the connection";
    return false;
  }

  bool Wrong(std::string reason) {
    selected_.wrong = std::move(reason);
    return false;
  }

  // How many of each class each member has.
  bool Count() {
    const std::size_t row = own_.class_count + 2;
    std::vector<float> table(members_ * row);
    float* const mine = table.data() + member_ * row;
    for (std::size_t c = 0; c < own_.class_count; ++c) {
      TACTUS_CHECK(of_class_[c].size() < kCountMax);
      mine[c] = static_cast<float>(of_class_[c].size());
    }
    mine[row - 2] = static_cast<float>(own_.excluded);
    double norm = 0;
    for (std::size_t i = 0; i < own_.samples.size(); ++i) norm += NormOf(i);
    mine[row - 1] = static_cast<float>(norm);
    if (!Sum(table)) return false;
    classes_.resize(own_.class_count);
    SelectionFacts& facts = selected_.facts;
    for (std::size_t member = 0; member < members_; ++member) {
      const float* const one = table.data() + member * row;
      for (std::size_t c = 0; c < own_.class_count; ++c) {
        classes_[c].sizes.push_back(static_cast<std::uint64_t>(one[c]));
        classes_[c].size += classes_[c].sizes.back();
      }
      facts.excluded += static_cast<std::uint64_t>(one[row - 2]);
      facts.norm += one[row - 1];
    }
    return true;
  }

  double NormOf(std::size_t i) const {
    double sum = 0;
    for (std::size_t k = 0; k < own_.width; ++k) {
      const double value = own_.values[i * own_.width + k];
      sum += value * value;
    }
    return std::sqrt(sum);
  }

  // What follows from the counts alone.
  bool Plan() {
    SelectionFacts& facts = selected_.facts;
    facts.of = options_.samples;
    for (const Class& one : classes_) facts.class_sizes.push_back(one.size);
    const std::uint64_t known =
        std::accumulate(facts.class_sizes.begin(), facts.class_sizes.end(), std::uint64_t{0});
    facts.norm /= std::max(1.0, static_cast<double>(known));
    const double most = kExcludedMax * static_cast<double>(options_.samples);
    if (static_cast<double>(facts.excluded) > most || known < options_.size) {
      facts.kept = true;
      return false;
    }
    const auto classes = static_cast<std::uint64_t>(
        std::ranges::count_if(facts.class_sizes, [](std::uint64_t size) { return size > 0; }));
    if (options_.size < classes) {
      return Wrong("gives " + std::to_string(options_.size) + " samples for " +
                   std::to_string(classes) + " classes; allowed is one of each, or more");
    }
    facts.class_quotas = Quotas(facts.class_sizes, options_.size);
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      classes_[c].quota = facts.class_quotas[c];
      classes_[c].picks = PlanPicks(classes_[c].sizes, classes_[c].quota, piece_max_);
    }
    return true;
  }

  std::uint64_t SeedOf(std::size_t c) const {
    return Rng(options_.seed).Fork("craig").Next() ^ Mix64((options_.number << 20) + c);
  }

  bool PickOwn() {
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      const std::vector<std::uint64_t>& quotas = classes_[c].picks.of_pieces[member_];
      for (std::size_t piece = 0; piece < quotas.size(); ++piece) {
        std::vector<std::size_t> of_piece;
        for (std::size_t i = piece; i < of_class_[c].size(); i += quotas.size()) {
          of_piece.push_back(of_class_[c][i]);
        }
        if (!PickIn(c, of_piece, quotas[piece])) return false;
      }
    }
    return true;
  }

  bool PickIn(std::size_t c, const std::vector<std::size_t>& of_piece, std::uint64_t budget) {
    if (budget == of_piece.size()) {
      for (const std::size_t i : of_piece) own_picks_.push_back(PickOf(c, i, 1));
      return true;
    }
    std::vector<float> values;
    for (const std::size_t i : of_piece) Append(values, ProxyOf(i));
    const Points points{.values = values, .width = own_.width};
    const Picked picked = PickGreedily(points, {.budget = static_cast<std::size_t>(budget),
                                                .seed = SeedOf(c),
                                                .go_on = [this] { return GoOn(); }});
    if (picked.points.empty()) return false;
    for (std::size_t k = 0; k < picked.points.size(); ++k) {
      own_picks_.push_back(PickOf(c, of_piece[picked.points[k]], picked.weights[k]));
    }
    if (!classes_[c].picks.again) own_error_ += picked.error;
    return true;
  }

  std::span<const float> ProxyOf(std::size_t i) const {
    return std::span(own_.values).subspan(i * own_.width, own_.width);
  }
  static void Append(std::vector<float>& values, std::span<const float> row) {
    values.insert(values.end(), row.begin(), row.end());
  }
  Pick PickOf(std::size_t c, std::size_t i, std::uint64_t weight) const {
    Pick pick{.sample = own_.samples[i], .weight = weight};
    if (classes_[c].picks.again) pick.proxy.assign(ProxyOf(i).begin(), ProxyOf(i).end());
    return pick;
  }

  std::size_t WordsOf(const Class& one) const {
    return kPickWords + (one.picks.again ? own_.width : 0);
  }

  // All members' picks come to all, class by class.
  bool Gather() {
    picks_.resize(classes_.size());
    for (std::size_t member = 0; member < members_; ++member) {
      std::size_t words = 0;
      for (const Class& one : classes_) words += one.picks.by(member) * WordsOf(one);
      if (words == 0) continue;
      std::vector<float> numbers;
      if (member == member_) numbers = NumbersOf();
      numbers.resize(words);
      const Completion told = transport_.StartBroadcast(numbers, static_cast<int>(member))->Wait();
      if (!Wait(told)) return false;
      TakeNumbers(member, numbers);
    }
    for (std::vector<Pick>& picks : picks_) std::ranges::sort(picks, {}, &Pick::sample);
    return true;
  }

  std::vector<float> NumbersOf() const {
    std::vector<float> numbers;
    for (const Pick& pick : own_picks_) {
      numbers.push_back(static_cast<float>(pick.sample >> 24));
      numbers.push_back(static_cast<float>(pick.sample & 0xffffff));
      numbers.push_back(static_cast<float>(pick.weight));
      Append(numbers, pick.proxy);
    }
    return numbers;
  }

  void TakeNumbers(std::size_t member, std::span<const float> numbers) {
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      const std::size_t words = WordsOf(classes_[c]);
      for (std::uint64_t i = 0; i < classes_[c].picks.by(member); ++i) {
        const std::span<const float> one = numbers.first(words);
        const std::span<const float> proxy = one.subspan(kPickWords);
        picks_[c].push_back({.sample = (static_cast<std::uint64_t>(one[0]) << 24) +
                                       static_cast<std::uint64_t>(one[1]),
                             .weight = static_cast<std::uint64_t>(one[2]),
                             .proxy = {proxy.begin(), proxy.end()}});
        numbers = numbers.subspan(words);
      }
    }
  }

  // So many as the class is to have, in the order of choosing; none: it ends.
  std::vector<std::size_t> ChooseAmongPicks(std::size_t c) {
    std::vector<float> values;
    std::vector<std::uint64_t> weights;
    for (const Pick& pick : picks_[c]) {
      Append(values, pick.proxy);
      weights.push_back(pick.weight);
    }
    const auto quota = static_cast<std::size_t>(classes_[c].quota);
    if (quota == picks_[c].size()) {
      std::vector<std::size_t> all(quota);
      std::iota(all.begin(), all.end(), std::size_t{0});
      return all;
    }
    return PickGreedily({.values = values, .width = own_.width},
                        {.budget = quota,
                         .weights = weights,
                         .seed = SeedOf(c),
                         .go_on = [this] { return GoOn(); }})
        .points;
  }

  // Each class by one member, whose answer all take: two processors need not find the same bits.
  bool PickAgain() {
    std::vector<float> places;  // from 1, in the order of picking, by class and sample; 0: not
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      if (!classes_[c].picks.again) continue;
      const std::size_t begin = places.size();
      places.resize(begin + picks_[c].size());
      if (c % members_ != member_) continue;
      const std::vector<std::size_t> chosen = ChooseAmongPicks(c);
      if (chosen.empty()) return false;
      for (std::size_t k = 0; k < chosen.size(); ++k) {
        places[begin + chosen[k]] = static_cast<float>(k + 1);
      }
    }
    if (!places.empty() && !Sum(places)) return false;
    std::span<const float> rest = places;
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      if (!classes_[c].picks.again) continue;
      std::vector<Pick> chosen(static_cast<std::size_t>(classes_[c].quota));
      for (std::size_t i = 0; i < picks_[c].size(); ++i) {
        if (rest[i] > 0) chosen.at(static_cast<std::size_t>(rest[i]) - 1) = picks_[c][i];
      }
      rest = rest.subspan(picks_[c].size());
      picks_[c] = std::move(chosen);
    }
    return true;
  }

  // What each stands for: every sample of its class counts for the nearest, a picked one for
  // itself.
  bool Assign() {
    std::vector<float> counts;
    double error = own_error_;
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      if (!classes_[c].picks.again) continue;
      const std::size_t begin = counts.size();
      counts.resize(begin + picks_[c].size());
      if (!AssignClass(c, std::span(counts).subspan(begin), error)) return false;
    }
    counts.push_back(static_cast<float>(error));
    if (!Sum(counts)) return false;
    std::size_t next = 0;
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      if (!classes_[c].picks.again) continue;
      for (Pick& pick : picks_[c]) pick.weight = static_cast<std::uint64_t>(counts[next++]);
    }
    selected_.facts.error = counts.back();
    return true;
  }

  bool AssignClass(std::size_t c, std::span<float> counts, double& error) {
    const std::vector<Pick>& picks = picks_[c];
    std::vector<float> values;
    std::map<std::uint64_t, std::size_t> picked;  // a sample's place among the picks
    for (std::size_t k = 0; k < picks.size(); ++k) {
      Append(values, picks[k].proxy);
      picked.emplace(picks[k].sample, k);
    }
    const DistancesTo to({.values = values, .width = own_.width});
    std::vector<float> ways(DistancesTo::kTogether * picks.size());
    std::vector<DistancesTo::Row> rows;
    std::size_t products = 0;  // since it was asked
    for (std::size_t at = 0; at < of_class_[c].size(); at += DistancesTo::kTogether) {
      const auto some = std::span(of_class_[c])
                            .subspan(at)
                            .first(std::min(DistancesTo::kTogether, of_class_[c].size() - at));
      rows.clear();
      for (std::size_t r = 0; r < some.size(); ++r) {
        rows.push_back({ProxyOf(some[r]), std::span(ways).subspan(r * picks.size(), picks.size())});
      }
      to.Compute(rows);
      for (std::size_t r = 0; r < some.size(); ++r) {
        if (const auto itself = picked.find(own_.samples[some[r]]); itself != picked.end()) {
          counts[itself->second] += 1;
          continue;
        }
        const auto nearest = std::ranges::min_element(rows[r].ways);
        counts[static_cast<std::size_t>(nearest - rows[r].ways.begin())] += 1;
        error += *nearest;
      }
      products += some.size() * values.size();
      if (products < kProductsBetween) continue;
      products = 0;
      if (!GoOn()) return false;
    }
    return true;
  }

  void Make() {
    double total = 0;
    for (const Class& one : classes_) total += static_cast<double>(one.size);
    const double mean = total / static_cast<double>(options_.size);
    std::vector<std::pair<std::uint64_t, double>> all;
    for (const std::vector<Pick>& picks : picks_) {
      std::vector<double> weights;
      for (const Pick& pick : picks) weights.push_back(static_cast<double>(pick.weight) / mean);
      HoldBelow(weights, options_.weight_max);
      for (std::size_t k = 0; k < picks.size(); ++k) all.emplace_back(picks[k].sample, weights[k]);
    }
    std::ranges::sort(all);
    engine::Subset& subset = selected_.subset.emplace(engine::Subset{.number = options_.number});
    SelectionFacts& facts = selected_.facts;
    bool alike = true;
    facts.weight_max = 0;
    for (const auto& [sample, weight] : all) {
      subset.samples.push_back(sample);
      subset.weights.push_back(static_cast<float>(weight));
      facts.weight_max = std::max<double>(facts.weight_max, subset.weights.back());
      alike = alike && subset.weights.back() == 1;
    }
    facts.effective = EffectiveCount(subset.weights);
    if (alike) subset.weights.clear();
    facts.samples = all.size();
    facts.error /= total;
  }

  const Proxies& own_;
  const SelectionOptions& options_;
  collective::Transport& transport_;
  const std::function<void()>& beside_;
  const std::size_t piece_max_;
  const std::size_t member_;
  const std::size_t members_;
  std::vector<std::vector<std::size_t>> of_class_;  // of this member's samples, by class
  std::vector<Class> classes_;
  std::vector<Pick> own_picks_;           // class by class
  std::vector<std::vector<Pick>> picks_;  // by class, of all members
  double own_error_ = 0;                  // of classes that are picked once
  Selected selected_;
};

std::string Number(double value) {
  std::array<char, 32> text{};
  static_cast<void>(std::snprintf(text.data(), text.size(), "%.3g", value));
  return text.data();
}

// "30 % of each of 10 classes", or what the least and the most of a class are.
std::string SharesText(const SelectionFacts& facts) {
  double least = 1;
  double most = 0;
  std::size_t classes = 0;
  for (std::size_t c = 0; c < facts.class_quotas.size(); ++c) {
    if (facts.class_sizes[c] == 0) continue;
    const double share =
        static_cast<double>(facts.class_quotas[c]) / static_cast<double>(facts.class_sizes[c]);
    least = std::min(least, share);
    most = std::max(most, share);
    ++classes;
  }
  const std::string low = Number(100 * least);
  const std::string high = Number(100 * most);
  if (classes == 1) return low + " % of them";
  const std::string share = low == high ? low : low + " to " + high;
  return share + " % of each of " + std::to_string(classes) + " classes";
}

}  // namespace

std::size_t PieceMaxOf(std::size_t width) {
  std::size_t samples = kPieceMax;
  while (samples > 256 &&
         samples * samples > (std::size_t{1} << 32) / std::max<std::size_t>(1, width)) {
    samples /= 2;
  }
  return samples;
}

std::vector<std::uint64_t> PartOf(const SelectionOptions& options, std::size_t member,
                                  std::size_t members) {
  std::vector<std::uint64_t> shares(options.shares.begin(), options.shares.end());
  std::uint64_t all = std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
  if (shares.size() != members || all == 0) {
    shares.assign(members, 1);
    all = members;
  }
  const auto edge = [&](std::size_t count) {
    const std::uint64_t before = std::accumulate(
        shares.begin(), shares.begin() + static_cast<std::ptrdiff_t>(count), std::uint64_t{0});
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(options.samples) * before /
                                      all);
  };
  const engine::EpochPermutation order(
      options.samples, Rng(options.seed).Fork("craig parts").Next(), options.number);
  std::vector<std::uint64_t> part;
  for (std::uint64_t at = edge(member); at < edge(member + 1); ++at) part.push_back(order.At(at));
  std::ranges::sort(part);
  return part;
}

Selected SelectCraig(const Proxies& own, const SelectionOptions& options,
                     collective::Transport& transport, const std::function<void()>& beside) {
  return Selection(own, options, transport, beside).Run();
}

std::string Describe(const SelectionFacts& facts) {
  const std::string excluded =
      facts.excluded > 0 ? std::to_string(facts.excluded) + " without a finite gradient" : "";
  if (facts.kept) return "what was chosen before stays: " + excluded;
  std::string text =
      std::to_string(facts.samples) + " of " + std::to_string(facts.of) + " samples, " +
      SharesText(facts) + ", weights up to " + Number(facts.weight_max) + " (as even as " +
      std::to_string(std::llround(facts.effective)) + " equal ones), error " + Number(facts.error) +
      " of " + Number(facts.norm) + ", in " + Number(facts.proxy_seconds + facts.greedy_seconds) +
      " s (gradients " + Number(facts.proxy_seconds) + " s, choice " +
      Number(facts.greedy_seconds) + " s)";
  return excluded.empty() ? text : text + "; " + excluded;
}

}  // namespace tactus::subset
