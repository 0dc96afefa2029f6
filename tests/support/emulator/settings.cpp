#include "support/emulator/settings.h"

#include <chrono>
#include <cstdlib>
#include <thread>

#include "nacre/base/error.h"

namespace nacre::emulator {
namespace {

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : "";
}

int64_t number(const char* name, int64_t otherwise) {
  const std::string text = variable(name);
  return text.empty() ? otherwise : std::strtoll(text.c_str(), nullptr, 10);
}

// Threads of the slow role sleep this many times longer. Threads that prepare batches have little
// to do beside an emulated device, so they sleep longest.
constexpr double kSlower[] = {30, 30, 300};
constexpr double kStretch = 100;

thread_local Role role_of_this_thread = Role::other;

}  // namespace

Settings& Settings::get() {
  static auto* settings = new Settings;  // streams may outlive every static object
  return *settings;
}

void Settings::reread() {
  const std::lock_guard lock(mutex_);
  arch_ = static_cast<int>(number("NACRE_EMULATOR_ARCH", 90));
  memory_bytes_ = number("NACRE_EMULATOR_MEMORY", int64_t{4} << 30);
  devices_ = static_cast<int>(number("NACRE_EMULATOR_DEVICES", 1));
  peers_ = number("NACRE_EMULATOR_PEERS", 1) != 0;
  forbids_others_ = variable("NACRE_EMULATOR_RECORDING") == "alone";
  finds_races_ = number("NACRE_EMULATOR_RACES", 0) != 0;
  shuffled_ = !variable("NACRE_EMULATOR_SEED").empty();
  random_.seed(static_cast<uint64_t>(number("NACRE_EMULATOR_SEED", 0)));
  delay_us_ = static_cast<double>(number("NACRE_EMULATOR_DELAY_US", shuffled_ ? 100 : 0));
  slow_ = static_cast<Role>(number("NACRE_EMULATOR_SEED", 0) % 3);
  // KIND:N lets the N-th call or work of this kind fail, and KIND:N+ lets all from the N-th on
  // fail.
  const std::string fail = variable("NACRE_EMULATOR_FAIL");
  const size_t colon = fail.find(':');
  fault_at_ = 0;
  counted_ = 0;
  if (colon == std::string::npos) return;
  const std::string kind = fail.substr(0, colon);
  fault_ = kind == "compile"      ? Fault::compile
           : kind == "allocation" ? Fault::allocation
           : kind == "work"       ? Fault::work
                                  : Fault::call;
  fault_at_ = std::strtoll(fail.c_str() + colon + 1, nullptr, 10);
  fault_stays_ = fail.back() == '+';
}

void Settings::this_thread_is(Role role) { role_of_this_thread = role; }

void Settings::pause(double longest) {
  if (delay_us_ <= 0) return;
  double microseconds = 0;
  {
    const std::lock_guard lock(mutex_);
    if (random_() % 8 != 0) return;
    microseconds = std::uniform_real_distribution<double>(0, delay_us_ * longest)(random_);
  }
  if (role_of_this_thread == slow_) microseconds *= kSlower[static_cast<size_t>(slow_)];
  std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(microseconds));
}

void Settings::stretch() const {
  if (delay_us_ > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(delay_us_ * kStretch));
}

uint64_t Settings::order() {
  if (!shuffled_) return 0;
  const std::lock_guard lock(mutex_);
  return random_();
}

bool Settings::fails(Fault kind) {
  if (fault_at_ == 0 || kind != fault_) return false;
  const int64_t now = ++counted_;
  return now == fault_at_ || (fault_stays_ && now > fault_at_);
}

void Settings::count(Fault kind, const std::string& what) {
  if (!fails(kind)) return;
  if (kind == Fault::allocation) throw UserError("device memory", what + ": none is left, as the test asks");
  throw InternalError(__FILE__, __LINE__, what + " failed on the emulated device, as the test asks");
}

}  // namespace nacre::emulator
