// BatchPlaces: on which of two places the work of each mini-batch of a run is done, the device of
// the run or the host beside it (--schedule daha and bytegnn). A plan holds it, because the values
// of a run depend on where its batches are computed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace nacre {

struct BatchPlaces {
  static constexpr char kDevice = 'd', kHost = 'h';

  // A letter for each batch of a pattern that is repeated over an epoch: where its neighbours are
  // drawn, and where its neural operations are computed. Both have the same length. If they are
  // empty, the device of the run does everything.
  std::string drawn, computed;
  // Whether many batches are drawn before the first of them is computed. The device and the host
  // then divide the drawing by forecasts (SampleGroups), and `drawn` is only what was expected.
  bool together = false;
  double seconds = 0;  // predicted seconds of a batch when many follow one another; 0: unknown
  double least = 0;    // no schedule takes less than these seconds for a batch; 0: unknown

  bool empty() const { return computed.empty(); }
  bool draws_on_host(int64_t batch) const { return letter(drawn, batch) == kHost; }
  bool computes_on_host(int64_t batch) const { return letter(computed, batch) == kHost; }
  bool host_draws() const { return drawn.find(kHost) < drawn.size(); }
  bool device_draws() const { return drawn.find(kDevice) < drawn.size(); }
  bool host_computes() const { return computed.find(kHost) < computed.size(); }
  // Returns whether both texts have the same length and only the letters above, and the seconds are
  // not negative.
  bool valid() const {
    const auto known = [](const std::string& text) {
      return std::all_of(text.begin(), text.end(), [](char c) { return c == kDevice || c == kHost; });
    };
    return drawn.size() == computed.size() && known(drawn) && known(computed) && seconds >= 0 && least >= 0;
  }

 private:
  static char letter(const std::string& text, int64_t batch) {
    return text.empty() ? kDevice : text[static_cast<size_t>(batch) % text.size()];
  }
};

}  // namespace nacre
