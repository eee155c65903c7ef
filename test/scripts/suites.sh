#!/bin/sh
# suites.sh - a program of tests that register themselves runs what its files
# say, and fails where it should (test/harness/suite.h).
#
# usage: srcdir=DIR CC=... test/scripts/suites.sh      (where libtest was built)
set -u
srcdir=${srcdir:-.}
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
if [ ! -f test/libtest.a ]; then
	skip 17 suites "there is no Check" check
	exit 77
fi
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

# tests NAME: writes a file of tests, whose text is standard input.
tests() {
	{
		echo '#include <signal.h>'
		echo '#include <stdio.h>'
		echo '#include <stdlib.h>'
		echo '#include <unistd.h>'
		echo '#include "test/harness/suite.h"'
		cat
	} >"$dir/$1.c"
}

# suite NAME FILE...: builds the suite from files of tests.
suite() {
	rm -f "$dir"/*.o
	suite_name=$1
	shift
	for file; do
		# shellcheck disable=SC2086 # several words each
		$CC -std=gnu11 -Wall -Wextra -Werror -pthread -I"$srcdir" \
			-I"$srcdir/include" ${CHECK_CFLAGS-} \
			${ATOMIC_OPS_CFLAGS-} ${RT_SANITIZER_CFLAGS-} \
			-c -o "$dir/$file.o" "$dir/$file.c" || exit 99
	done
	# shellcheck disable=SC2086
	$CC -pthread ${RT_SANITIZER_CFLAGS-} -o "$dir/check_$suite_name" \
		"$dir"/*.o test/libtest.a librtheap_internal.a \
		${ATOMIC_OPS_LIBS-} ${CHECK_LIBS-} || exit 99
}

# show prints what the suite has printed, but not as lines of this script's log.
show() {
	sed 's/^/| /' "$dir/out"
}

# run STATUS: runs the suite, and leaves what it prints in out.  Fails if the
# suite ends with another status.
run() {
	CK_VERBOSITY=verbose "$dir/check_$suite_name" >"$dir/out" 2>&1
	[ $? = "$1" ] || { show; return 1; }
}

# says PATTERN...: requires that the suite has printed a line for each.
says() {
	for pattern; do
		grep -q "$pattern" "$dir/out" || { show; return 1; }
	done
}

# fails WHAT PATTERN...: requires that the suite ends with status 1 and says so.
fails() {
	what=$1
	shift
	run 1 && says "$@"
	verdict $? "$what"
}

# Two files, named against the order in which they are linked; groups that are
# continued, a group that is last, and every option.
tests b <<'end'
static int ready;
static void setup(void) { ready = 1; }
static void end(void) { fprintf(stderr, "ready was %d\n", ready); }

TEST(alone) { ck_assert_int_eq(_i, 0); }
GROUP(with, .setup = setup, .timeout = 50);
TEST(set_up) { ck_assert_int_eq(ready, 1); }
GROUP(ended, .setup = setup, .teardown = end);
TEST(torn_down) { ready++; }
GROUP(with);
TEST(set_up_too, .n = 2) { ck_assert_int_eq(ready, 1); }
end
tests a <<'end'
static void miss(void) { ck_abort_msg("not skipped"); }

GROUP(skipped, .setup = miss);
TEST(left_out, .n = 2, .exit = 3, .unless = SUITE_UNLESS(true, "here")) { miss(); }
GROUP(points, .last = true);
TEST(the_end, .base = 5, .limit = 7) { ck_assert_int_ge(_i, 5); }
GROUP(ends);
TEST(aborts, .signal = SIGABRT) { abort(); }
TEST(exits, .n = 2, .exit = 42) { exit(42); }
TEST(not_left_out, .unless = SUITE_UNLESS(false, "here")) {}
end
suite two b a
run 0
verdict $? "a suite that passes"
sed -n 's/^.*\/\([ab]\)\.c:[0-9]*:\([A-Z]:[a-z]*:[a-z_]*:[0-9]*\): .*/\1:\2/p' \
	"$dir/out" >"$dir/ran"
cat >"$dir/wanted" <<'end'
b:P:two:alone:0
a:P:skipped:left_out:0
a:P:skipped:left_out:1
a:P:ends:aborts:0
a:P:ends:exits:0
a:P:ends:exits:1
a:P:ends:not_left_out:0
b:P:with:set_up:0
b:P:with:set_up_too:0
b:P:with:set_up_too:1
b:P:ended:torn_down:0
a:P:points:the_end:5
a:P:points:the_end:6
end
diff "$dir/wanted" "$dir/ran"
verdict $? "groups, loops and the order of tests"
says '^ready was 2$'
verdict $? "a fixture runs before and after"
[ "$(grep -c '^skipped: 1 of left_out: here$' "$dir/out")" = 2 ]
verdict $? "a test that is left out says why, and needs no fixture"
says '^Running suite(s): two$' '^100%: Checks: 13, Failures: 0, Errors: 0$'
verdict $? "the name of the suite and its sum"
CK_RUN_CASE=ends "$dir/check_two" | grep -q 'Checks: 4,'
verdict $? "CK_RUN_CASE chooses a group"

tests bad <<'end'
static void refuse(void) { ck_abort_msg("refused"); }

GROUP(bad);
TEST(a_check_that_fails) { ck_assert(_i); }
TEST(a_wrong_signal, .signal = SIGABRT) { raise(SIGTERM); }
TEST(no_signal, .signal = SIGABRT) {}
TEST(a_wrong_exit, .exit = 42) { exit(41); }
TEST(one_of_three, .n = 3) { ck_assert_int_ne(_i, 2); }
GROUP(late, .timeout = 1);
TEST(one_that_hangs) { for (;;) pause(); }
GROUP(refused, .setup = refuse);
TEST(a_fixture_that_fails) {}
end
suite bad bad
CK_TIMEOUT_MULTIPLIER=1
export CK_TIMEOUT_MULTIPLIER
fails "a suite in which tests fail" 'Checks: 9, Failures: 4, Errors: 3$'
for line in F:bad:a_check_that_fails:0 E:bad:a_wrong_signal:0 \
	F:bad:no_signal:0 E:bad:a_wrong_exit:0 F:bad:one_of_three:2 \
	E:late:one_that_hangs:0 :refused:a_fixture_that_fails:0; do
	says "$line"
	verdict $? "$line"
done

tests same1 <<'end'
TEST(one_name) {}
end
tests same2 <<'end'
TEST(one_name) {}
end
suite same same1 same2
fails "two tests of one name" 'same2.c:6: one_name is the name of two tests$'

tests empty </dev/null
suite empty empty
fails "a suite without a test" '^empty: there is no test$'

tests again <<'end'
GROUP(one);
TEST(first) {}
GROUP(one, .timeout = 50);
TEST(second) {}
end
suite again again
fails "a group that goes on with options" 'again.c:8: one goes on and has options$'

verdict_sum
