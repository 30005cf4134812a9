#include "bench/nccl/outcome.h"

#include <charconv>
#include <cstdio>

namespace tactus::bench::nccl {
namespace {

constexpr std::string_view kPassed = "passed";
constexpr std::string_view kFailed = "failed";

std::string OneLine(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text;
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : OneLine(text)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

// Takes the text up to the next end of a line, which is taken too; none where there is none.
std::optional<std::string_view> TakeLine(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

}  // namespace

std::string ToLines(const Outcome& outcome) {
  std::string lines(outcome.passed ? kPassed : kFailed);
  lines += "\n" + OneLine(outcome.said) + "\n";
  for (const Figure& figure : outcome.figures) {
    lines += Number(figure.value) + " " + figure.name + "\n";
  }
  return lines;
}

std::optional<Outcome> FromLines(std::string_view lines) {
  const std::optional<std::string_view> verdict = TakeLine(lines);
  const std::optional<std::string_view> said = TakeLine(lines);
  if (!verdict || !said || (*verdict != kPassed && *verdict != kFailed)) return std::nullopt;
  Outcome outcome{.passed = *verdict == kPassed, .said = std::string(*said)};
  while (const std::optional<std::string_view> line = TakeLine(lines)) {
    Figure figure;
    const auto [end, error] =
        std::from_chars(line->data(), line->data() + line->size(), figure.value);
    if (error != std::errc() || end == line->data() + line->size()) return std::nullopt;
    figure.name = std::string(end + 1, line->data() + line->size());
    outcome.figures.push_back(figure);
  }
  return outcome;
}

Outcome Together(const std::vector<Outcome>& members) {
  Outcome together{.passed = true};
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    together.passed = together.passed && members[rank].passed;
    if (rank > 0) together.said += "; ";
    together.said += "rank " + std::to_string(rank) + ": " + members[rank].said;
  }
  if (!members.empty()) together.figures = members[0].figures;
  return together;
}

std::string ToJson(std::string_view name, const Outcome& outcome) {
  std::string json = "{\"case\": " + Quoted(std::string(name));
  json += outcome.passed ? ", \"passed\": true" : ", \"passed\": false";
  json += ", \"said\": " + Quoted(outcome.said) + ", \"figures\": {";
  for (const Figure& figure : outcome.figures) {
    if (&figure != &outcome.figures.front()) json += ", ";
    json += Quoted(figure.name) + ": " + Number(figure.value);
  }
  return json + "}}";
}

}  // namespace tactus::bench::nccl
