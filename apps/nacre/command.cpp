#include "command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <sstream>
#include <type_traits>
#include <utility>

namespace nacre::cli {
namespace {

// Returns the names that set_by_run() has set. Each thread has names of its own, because threads of
// a Python program may read settings at the same time.
std::set<std::string>& names_set_by_run() {
  static thread_local std::set<std::string> names;
  return names;
}

const std::string kChoices = "choices:", kOnlyChoices = "only choices:";

// Stores the names for completions. CLI11 has no place for them, so they become the name of a check
// that accepts every value.
void store_choices(CLI::Option& option, const std::string& kind, const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : "|") + name;
  option.check(CLI::Validator([](std::string&) { return std::string(); }, "", kind + list));
}

}  // namespace

void set_by_run(const std::set<std::string>& names) { names_set_by_run() = names; }

Setting Setting::group(const std::string& heading) const {
  option_->group(heading);
  return *this;
}

Setting Setting::add_help(const std::string& more) const {
  option_->description(option_->get_description() + more);
  return *this;
}

Setting Setting::show_default() const {
  option_->capture_default_str();
  return *this;
}

Setting Setting::required() const {
  option_->required();
  return *this;
}

Setting Setting::positive() const {
  option_->check(CLI::PositiveNumber);
  return *this;
}

// This check replaces CLI11's own, whose error message names the largest double as the upper bound.
Setting Setting::not_negative() const {
  return check([](const std::string& text) {
    double value = 0;
    return parse_double(text, value) && value < 0 ? "'" + text + "' must not be negative" : std::string();
  });
}

Setting Setting::between(int low, int high) const {
  return between(static_cast<double>(low), static_cast<double>(high));
}

// This check replaces CLI11's own, which accepts NaN.
Setting Setting::between(double low, double high) const {
  return check([low, high](const std::string& text) {
    double value = 0;
    const bool wrong = parse_double(text, value) && !(value >= low && value <= high);
    return wrong ? fmt::format("'{}' is not between {:g} and {:g}", text, low, high) : std::string();
  });
}

Setting Setting::check(std::function<std::string(const std::string&)> wrong) const {
  option_->check(std::move(wrong));
  return *this;
}

Setting Setting::one_of(const std::string& what, std::vector<std::string> names, std::vector<Synonym> synonyms) const {
  only_choices(names);
  return written_as([option = option_->get_name(), what, names = std::move(names), synonyms = std::move(synonyms)](
                        const std::string& text) { return choose_name(option, what, text, names, synonyms); });
}

Setting Setting::choices(const std::vector<std::string>& names) const {
  store_choices(*option_, kChoices, names);
  return *this;
}

Setting Setting::only_choices(const std::vector<std::string>& names) const {
  store_choices(*option_, kOnlyChoices, names);
  return *this;
}

Setting Setting::written_as(std::function<std::string(const std::string&)> change) const {
  option_->transform([change = std::move(change)](const std::string& text) { return change(text); }, "");
  return *this;
}

bool Setting::given() const { return option_->count() > 0 && !names_set_by_run().contains(option_->get_name()); }

std::string Setting::name() const { return option_->get_name(); }

Command Command::add_subcommand(const std::string& name, const std::string& help) const {
  return {*app_->add_subcommand(name, help)};
}

void Command::require_subcommand() const { app_->require_subcommand(1); }

namespace {

// Returns what is wrong with the text of a number; empty if nothing is. Users see it in place of
// CLI11's message "Could not convert: --epochs = x".
template <class T>
std::string wrong_number(const std::string& text) {
  T value{};
  if (CLI::detail::lexical_cast(text, value)) return "";
  return "'" + text + "' is not a " + (std::is_floating_point_v<T> ? "number" : "whole number that fits here");
}

}  // namespace

template <class T>
Setting Command::add_option(const std::string& names, T& value, const std::string& help) const {
  CLI::Option* option = app_->add_option(names, value, help);
  if constexpr (!std::is_same_v<T, std::string>) option->check(CLI::Validator(wrong_number<T>, "", "number"));
  return Setting(option);
}

template Setting Command::add_option(const std::string&, std::string&, const std::string&) const;
template Setting Command::add_option(const std::string&, int&, const std::string&) const;
template Setting Command::add_option(const std::string&, int64_t&, const std::string&) const;
template Setting Command::add_option(const std::string&, uint64_t&, const std::string&) const;
template Setting Command::add_option(const std::string&, double&, const std::string&) const;

Setting Command::add_flag(const std::string& names, bool& value, const std::string& help) const {
  return Setting(app_->add_flag(names, value, help)->disable_flag_override());
}

Setting Command::add_off_flag(const std::string& names, bool& value, const std::string& help) const {
  return add_flag_call(
      names, [&value] { value = false; }, help);
}

Setting Command::add_call(const std::string& names, const std::function<void(const std::string&)>& call,
                          const std::string& help) const {
  return Setting(app_->add_option_function<std::string>(names, call, help));
}

Setting Command::add_list(const std::string& names, const std::function<void(const std::vector<std::string>&)>& call,
                          const std::string& help) const {
  CLI::Option* option = app_->add_option_function<std::vector<std::string>>(names, call, help);
  return Setting(option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll));
}

Setting Command::add_flag_call(const std::string& names, std::function<void()> call, const std::string& help) const {
  return Setting(app_->add_flag_callback(names, std::move(call), help)->disable_flag_override());
}

Setting Command::get_option(const std::string& name) const { return Setting(app_->get_option(name)); }

bool Command::has_option(const std::string& name) const { return app_->get_option_no_throw(name) != nullptr; }

bool Command::given(const std::string& name) const { return has_option(name) && get_option(name).given(); }

std::vector<std::string> Command::all_given() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    if (option->count() > 0) names.push_back(option->get_name());
  }
  return names;
}

Command Command::without(const std::vector<std::string>& names) const {
  for (const std::string& name : names) app_->remove_option(app_->get_option(name));
  return *this;
}

// Returns the names that store_choices() has stored as the name of a check.
OfferedValues choices_of(CLI::Option& option) {
  OfferedValues offered;
  for (int i = 0;; ++i) {
    std::string list;
    try {
      list = option.get_validator(i)->get_name();
    } catch (const CLI::OptionNotFound&) {
      return offered;
    }
    const bool only = list.starts_with(kOnlyChoices);
    if (!only && !list.starts_with(kChoices)) continue;
    offered.files = offered.files && !only;
    std::istringstream words(list.substr(list.find(':') + 1));
    for (std::string name; std::getline(words, name, '|');) offered.names.push_back(name);
  }
}

void Command::callback(std::function<void()> run) const { app_->callback(std::move(run)); }

bool parse_double(const std::string& text, double& value) { return CLI::detail::lexical_cast(text, value); }

}  // namespace nacre::cli
