#!/bin/sh
# coverage.sh - which lines and branches of the library do the suites take?
#
# usage: srcdir=DIR tools/coverage.sh
#
# The script builds the library and the suites in coverage.build with gcc's
# counters, and runs the suites.  For each file of the library it prints its
# lines, its branches, and the numbers of the lines with a branch that was never
# taken.  The sources with their counts are in coverage.build/html/index.html.
#
# It fails if a suite fails, or if less than 95 % of all lines or 85 % of all
# branches were taken.  It also fails if one of the files named below has an
# untaken branch.
#
# The build is not optimised, so that every condition in the source is one
# branch.  For the same reason no function is inline (always_inline is defined
# away): a function of a header is counted once, not once for each caller.  The
# build has no -fexceptions either.  With it, every call would have a second
# branch that no test takes, because calls of C code return or end the program.
# test/whole/check_unwind needs it and is left out.  The code that runs when a frame
# is left by unwinding runs as well when the frame returns.
set -eu
LC_ALL=C
export LC_ALL
min_lines=95
min_branches=85

# Files whose branches must all be taken, each with the reason.
exact='
runtime/base/bits      everything is counted with it
runtime/base/sizeclass a size in the wrong class is memory overwritten
runtime/base/spanclass the same
runtime/base/histogram arithmetic at edges
runtime/world/pausering readers and a writer without a lock
runtime/world/cyclering the same
runtime/os/gauge     statistics: bytes are counted here
runtime/world/heapgauge statistics
runtime/world/heapstats statistics
runtime/world/gcstats   statistics
gc/stats/snapshot       statistics
gc/stats/mstats         statistics
gc/stats/metrics        statistics
gc/api/memstats         statistics
gc/api/metrics          statistics
runtime/os/oscall    the system may refuse any call
runtime/os/sysmem    what it refuses is not counted
'

srcdir=$(cd "${srcdir:-.}" && pwd)
work=$PWD/coverage.build
jobs=-j$(nproc 2>/dev/null || echo 1)

command -v gcovr >/dev/null || {
	echo "coverage: no gcovr (Debian: gcovr)" >&2
	exit 1
}

# Configure refuses sources that are configured in place, so it gets a clean
# copy.
copy_sources() {
	mkdir "$work/source" "$work/build" "$work/html" || return
	(cd "$srcdir" && tar -cf - --exclude=.git --exclude='*.build' \
		--exclude='*.o' --exclude='*.lo' --exclude=.libs \
		--exclude='*.la' --exclude='*.a' .) |
		tar -xf - -C "$work/source"
	[ ! -f "$work/source/config.status" ] ||
		make -C "$work/source" distclean
}

configure() {
	cd "$work/build" &&
		${CC:=gcc} -c "$work/source/test/harness/coverage.c" -o ends.o || return
	"$work/source/configure" CC="$CC" --disable-shared --disable-hardening \
		CPPFLAGS='-DRT_COVERAGE -Dalways_inline=unused' \
		CFLAGS='-O0 --coverage -fprofile-update=atomic -fno-exceptions' \
		LDFLAGS='-Wl,--wrap=abort,--wrap=_exit' LIBS="$PWD/ends.o"
}

# The scripts are left out, because they test programs of their own, and the
# programs of test/long, because they take minutes in this build.
run_suites() {
	# shellcheck disable=SC2016 # variables of make
	suites='$(filter-out test/whole/check_unwind test/long/%,$(suites))'
	# shellcheck disable=SC2016
	CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-10} \
		make -C "$work/build" "$jobs" check \
		TESTS="$suites"' $(fuzz_programs) $(replacing_tests)'
}

# Cobertura's format has a line of text for every line of the sources.
collect() {
	cd "$work" &&
		gcovr --gcov-executable "${GCOV:-gcov}" "$jobs" --root source \
			--filter source/runtime/ --filter source/gc/ \
			--xml-pretty --output coverage.xml \
			--html-details html/index.html \
			build/runtime build/gc build/test
}

report() {
	awk -v exact="$exact" -v min_lines=$min_lines \
		-v min_branches=$min_branches '
	function share(part, all) {
		return all == 0 ? 100 : 100 * part / all
	}
	function row(name, l, nl, b, nb, what) {
		printf "%-22s %5d of %5d lines %5.1f %%", name, l, nl,
			share(l, nl)
		printf "  %5d of %5d branches %5.1f %%  %s\n", b, nb,
			share(b, nb), what
	}
	function judge(good, what) {
		if (good) {
			passed++
			return
		}
		failed++
		print "coverage: " what
	}
	function value(key) {
		match($0, key "=\"[^\"]*\"")
		return substr($0, RSTART + length(key) + 2,
			RLENGTH - length(key) - 3)
	}
	function close_file() {
		if (file == "")
			return
		row(file, l, nl, b, nb, left)
		module = file
		sub(/\.[ch]$/, "", module)
		if (module in wanted) {
			seen[module]
			judge(b == nb, file ": branches left in lines" left)
		}
		sum_l += l; sum_nl += nl; sum_b += b; sum_nb += nb
		file = ""
	}
	BEGIN {
		n = split(exact, line, "\n")
		for (i = 1; i <= n; i++)
			if (split(line[i], word, " "))
				wanted[word[1]]
	}
	/<class / { file = value("filename") }
	/<methods\/>|<\/methods>/ { l = nl = b = nb = 0; left = "" }
	/<\/class>/ { close_file() }
	/<line / {
		nl++
		l += value("hits") > 0
		if (split(value("condition-coverage"), part, /[(\/)]/) < 3)
			next
		b += part[2]
		nb += part[3]
		if (part[2] < part[3])
			left = left " " value("number")
	}
	END {
		for (module in wanted)
			if (!(module in seen))
				judge(0, module ": not among what was compiled")
		row("all", sum_l, sum_nl, sum_b, sum_nb, "")
		judge(share(sum_l, sum_nl) >= min_lines,
			"fewer than " min_lines " % of the lines")
		judge(share(sum_b, sum_nb) >= min_branches,
			"fewer than " min_branches " % of the branches")
		printf "%d passed, %d failed\n", passed, failed
		exit failed > 0
	}' "$work/coverage.xml"
}

# step NAME runs a function, and shows the end of its output if it fails.
step() {
	("$1") >"$work/$1.log" 2>&1 || {
		tail -n 200 "$work/$1.log" >&2
		exit 1
	}
}

rm -rf "$work"
mkdir -p "$work"
for name in copy_sources configure run_suites collect; do
	step $name
done
report
