#!/bin/sh
# finds_races.sh RACY: the thread sanitizer finds each race of the program RACY (racy.cpp) where it
# is, and no others.
run=$(dirname "$0")/run.sh
failed=0
for kind in loop tasks poster none; do
  report=$("$run" "$1" $kind 2>&1)
  status=$?
  case $kind in none) wanted=0 ;; *) wanted=66 ;; esac
  if [ $status -ne $wanted ]; then
    printf 'racy %s ended with status %d, but %d is right:\n%s\n' "$kind" $status $wanted "$report"
    failed=1
  elif [ $wanted -eq 66 ] && ! printf '%s\n' "$report" | grep -q 'SUMMARY: ThreadSanitizer: data race .*racy.cpp'; then
    printf 'racy %s: the report names another place:\n%s\n' "$kind" "$report"
    failed=1
  fi
done
exit $failed
