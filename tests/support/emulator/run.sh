#!/bin/sh
# run.sh SHARE FILTER PROGRAM [argument ...]: runs a test program on the emulated device: every
# SHARE-th of the tests that FILTER names, or all tests where NACRE_EMULATE_ALL is set (make
# emulate), and then watched for races.
share=$1
filter=$2
shift 2
if [ -z "${NACRE_EMULATE_ALL:-}" ]; then
  GTEST_TOTAL_SHARDS=$share
  GTEST_SHARD_INDEX=0
  GTEST_FILTER=$filter
  export GTEST_TOTAL_SHARDS GTEST_SHARD_INDEX GTEST_FILTER
else
  NACRE_COMPILE_ALL=1
  NACRE_EMULATOR_RACES=1
  export NACRE_COMPILE_ALL NACRE_EMULATOR_RACES
fi
exec "$@"
