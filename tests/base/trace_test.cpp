#include "nacre/base/trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "nacre/base/error.h"
#include "nacre/base/pending_file.h"

namespace nacre {
namespace {

using nlohmann::json;

class TraceTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  json written() const {
    trace_write(path_);
    return json::parse(read_file(path_));
  }

  std::string path_ =
      (std::filesystem::temp_directory_path() / ("nacre_trace_" + std::to_string(getpid()) + ".json")).string();
};

// This test comes first, because tracing stays on once it has started.
TEST_F(TraceTest, RecordsNothingUntilStarted) {
  EXPECT_FALSE(trace_enabled());
  const TraceSpan early("test", "begun before the start");
  { const TraceSpan span("test", "unseen"); }
  EXPECT_EQ(written()["traceEvents"].size(), 0U);
  trace_start();
  EXPECT_TRUE(trace_enabled());
}

TEST_F(TraceTest, SpansOfAllThreadsNest) {
  trace_start();
  {
    const TraceSpan outer("test", "outer");
    { const TraceSpan inner("test", "inner"); }
    std::thread([] { const TraceSpan other("test", "other"); }).join();
  }
  const json trace = written();
  ASSERT_EQ(trace["traceEvents"].size(), 3U);
  std::map<std::string, json> events;
  for (const json& event : trace["traceEvents"]) {
    EXPECT_EQ(event["ph"], "X");
    EXPECT_EQ(event["cat"], "test");
    EXPECT_GE(event["ts"].get<double>(), 0);
    EXPECT_GE(event["dur"].get<double>(), 0);
    events[event["name"]] = event;
  }
  const auto end = [](const json& event) { return event["ts"].get<double>() + event["dur"].get<double>(); };
  EXPECT_LE(events["outer"]["ts"].get<double>(), events["inner"]["ts"].get<double>());
  EXPECT_GE(end(events["outer"]) + 0.001, end(events["inner"]));
  EXPECT_EQ(events["outer"]["tid"], events["inner"]["tid"]);
  EXPECT_NE(events["outer"]["tid"], events["other"]["tid"]);
}

TEST_F(TraceTest, NamesMayHoldAnything) {
  trace_start();
  const std::string odd = "a \"quoted\" \\ name\nof two lines";
  { const TraceSpan span("test", trace_name(odd)); }
  const json trace = written();
  ASSERT_EQ(trace["traceEvents"].size(), 1U);
  EXPECT_EQ(trace["traceEvents"][0]["name"], "a \"quoted\" \\ nameof two lines");
}

TEST_F(TraceTest, Numbers) {
  trace_numbers("unseen", {{"a", 1}});
  trace_start();
  trace_numbers("rows", {{"local", 3}, {"host", int64_t{1} << 40}});
  const json trace = written();
  ASSERT_EQ(trace["traceEvents"].size(), 1U);
  const json event = trace["traceEvents"][0];
  EXPECT_EQ(event["ph"], "C");
  EXPECT_EQ(event["name"], "rows");
  EXPECT_EQ(event["args"]["local"], 3);
  EXPECT_EQ(event["args"]["host"], int64_t{1} << 40);
}

TEST_F(TraceTest, NamesAreInterned) {
  const char* first = trace_name("kernel 1");
  EXPECT_STREQ(first, "kernel 1");
  EXPECT_EQ(first, trace_name(std::string("kernel ") + "1"));
  for (int i = 0; i < 1000; ++i) trace_name(std::to_string(i));
  EXPECT_STREQ(first, "kernel 1");
}

TEST_F(TraceTest, StartingAgainForgets) {
  trace_start();
  { const TraceSpan span("test", "old"); }
  trace_start();
  EXPECT_EQ(written()["traceEvents"].size(), 0U);
}

// The spans of long runs are written as they come; nothing is lost, and nothing stands under the
// name before the end.
TEST_F(TraceTest, ManySpansAreWrittenAsTheyCome) {
  constexpr int kMany = 50'000;
  trace_start(path_);
  const auto record = [](const char* name) {
    for (int i = 0; i < kMany; ++i) const TraceSpan span("test", name);
  };
  std::thread other(record, "other");
  record("own");
  other.join();
  EXPECT_FALSE(std::filesystem::exists(path_));
  std::map<std::string, int> counts;
  const json trace = written();
  for (const json& event : trace["traceEvents"]) ++counts[event["name"]];
  EXPECT_EQ(counts, (std::map<std::string, int>{{"other", kMany}, {"own", kMany}}));
}

TEST_F(TraceTest, WhatFailsWhileSpansAreRecordedIsToldAtTheEnd) {
  constexpr int kMany = 50'000;
  trace_start("no/such/folder/trace.json");
  for (int i = 0; i < kMany; ++i) const TraceSpan span("test", "span");
  EXPECT_THROW(trace_write("no/such/folder/trace.json"), UserError);
  trace_start();
  EXPECT_EQ(written()["traceEvents"].size(), 0U);
}

TEST_F(TraceTest, NothingIsRecordedAfterTheEnd) {
  trace_start(path_);
  { const TraceSpan span("test", "first"); }
  EXPECT_EQ(written()["traceEvents"].size(), 1U);
  {
    const TraceSpan open("test", "open at the end");
    trace_end();
  }
  EXPECT_FALSE(trace_enabled());
  for (int i = 0; i < 50'000; ++i) const TraceSpan span("test", "later");
  trace_start();
  EXPECT_EQ(written()["traceEvents"].size(), 0U);
}

TEST_F(TraceTest, AFolderThatIsNotThereIsAnError) { EXPECT_THROW(trace_write("no/such/folder/trace.json"), UserError); }

}  // namespace
}  // namespace nacre
