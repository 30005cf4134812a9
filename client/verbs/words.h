// Words that several verbs have in common, and what their values say.

#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "client/verbs/verb.h"
#include "client/yaml/job_file.h"

namespace tactus::client {

// A word of `program` that needs one of its own behind it: get, describe, config.
CLI::App* AddGroup(CLI::App& program, const std::string& name, const std::string& help);

// The group of the verbs that look after the coordinator; the first of them adds it.
CLI::App& AdminGroup(CLI::App& program);

CLI::Validator WholeNumber(std::uint64_t low, std::uint64_t high);
CLI::Validator DurationText();

// The operand that names a job, or a node.
void AddJob(CLI::App* verb, std::string* name);
void AddNode(CLI::App* verb, std::string* name);

void AddJobFile(CLI::App* verb, std::string* path);

// -o, --output with these formats; shows `*output` as its default.
void AddOutput(CLI::App* verb, std::string* output, const std::vector<std::string>& formats);

// -o text or json, for verbs that print events.
void AddLines(CLI::App* verb, std::string* output);

// Of an option that was given; not given: nothing. Requires: DurationText checked it.
std::optional<Duration> GivenDuration(const std::string& text);

void AddPriority(CLI::App* verb, std::string* priority);
std::optional<std::int32_t> ParsePriority(const std::string& text);  // nothing: not one

// An option that may be given again, with one value each.
template <typename Value>
CLI::Option* AddRepeated(CLI::App* verb, const std::string& name, std::vector<Value>* values,
                         const std::string& help) {
  return verb->add_option(name, *values, help)->expected(1)->allow_extra_args(false)->take_all();
}

// --set of a job file.
void AddOverrides(CLI::App* verb, std::vector<std::string>* texts);

// KEY=VALUE each; of labels with one key the last counts. Returns what is wrong with the first one
// that is wrong; empty: nothing.
std::string ReadOverrides(const std::vector<std::string>& texts, std::vector<Override>* overrides);
std::string ReadLabels(const std::vector<std::string>& texts,
                       std::map<std::string, std::string>* labels);

}  // namespace tactus::client
