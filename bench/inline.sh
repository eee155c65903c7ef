#!/bin/sh
# inline.sh - counts the instructions of one inline allocation.
#
# inline.c runs with N and with 2N allocations a loop, in C and in C++, under
# callgrind.  The script takes the additional instructions of the second run in
# the function of a loop, and subtracts those of the empty loop.  Divided by N,
# that is one inline sequence.  A count, unlike a time, is the same on every
# run.  A loop that called a function has left the inline sequence, and counts
# as broken.
#
# usage: srcdir=DIR CC=... CXX=... LIBRTHEAP=... bench/inline.sh
#
# LIBRTHEAP is the library to link, by default the one in the current
# directory.  The script prints "language loop instructions" for each loop.  It
# exits with 77 if there is no valgrind, or if the library cannot run under it.
set -eu
LC_ALL=C
export LC_ALL
srcdir=${srcdir:-.}
n=25
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# skip WHY [PACKAGE] reports that 14 loops in each of two languages are skipped.
skip() {
	echo "skipped: 28 of inline allocations: $1${2:+; install $2}"
	exit 77
}

# The archive is one object.  If no static library was built, the shared one is
# linked where it is.
library() {
	if [ -f librtheap.a ]; then
		echo "librtheap.a $(pkg-config --libs atomic_ops 2>/dev/null ||
			echo -latomic_ops)"
	elif [ -f .libs/librtheap.so ]; then
		echo ".libs/librtheap.so -Wl,-rpath,$PWD/.libs"
	else
		echo "inline: no library in $PWD" >&2
		return 1
	fi
}

# first_of prints the first of the compilers that is installed, or nothing.
first_of() {
	for compiler in "$@"; do
		if command -v "$compiler" >/dev/null 2>&1; then
			echo "$compiler"
			return
		fi
	done
}

# build LANGUAGE COMPILER OPTION... makes the program without debugging
# information, because valgrind may not read the newest forms of it.
build() {
	language=$1
	shift
	# shellcheck disable=SC2086 # lists of options
	"$@" -O2 -pthread -Wl,--strip-debug -I"$srcdir/include" "$srcdir/bench/inline.c" \
		-x none -o "$work/$language" $LIBRTHEAP -lpthread
}

# profile LANGUAGE COUNT prints "loop instructions calls" of every loop.  In a
# profile, fn= begins the lines of a function.  A line with calls= comes before
# the line with the cost of the callee.
profile() {
	valgrind --tool=callgrind --compress-strings=no --compress-pos=no \
		--callgrind-out-file="$work/profile" "$work/$1" "$2" \
		>"$work/log" 2>&1 || {
		cat "$work/log" >&2
		return 1
	}
	awk '
	/^fn=/ { name = substr($0, 4); next }
	/^calls=/ { calls[name]++; callee = 1; next }
	/^[0-9]/ {
		if (!callee)
			cost[name] += $2
		callee = 0
	}
	END {
		for (name in cost)
			if (name ~ /^inline_loop_/)
				print name, cost[name], calls[name] + 0
	}' "$work/profile" | sort
}

# count LANGUAGE prints one line for each loop.
count() {
	profile "$1" $n >"$work/once"
	profile "$1" $((2 * n)) >"$work/twice"
	join "$work/once" "$work/twice" | awk -v language="$1" -v n=$n '
	{ more[$1] = $4 - $2; calls[$1] = $3 + $5 }
	END {
		if (!("inline_loop_nothing" in more))
			exit 1
		for (name in more) {
			if (name == "inline_loop_nothing")
				continue
			each = (more[name] - more["inline_loop_nothing"]) / n
			loop = substr(name, 13)
			if (calls[name])
				print language, loop, "broken: it calls"
			else
				printf "%s %s %.2f\n", language, loop, each
		}
	}' | sort
}

command -v valgrind >/dev/null 2>&1 || skip "there is no valgrind" valgrind
LIBRTHEAP=${LIBRTHEAP:-$(library)}
for file in $LIBRTHEAP; do
	[ ! -f "$file" ] || ! nm "$file" 2>/dev/null |
		grep -q ' U __[at]san_init' || skip "a sanitizer is built in"
done
CC=${CC:-$(first_of cc gcc clang)}
CXX=${CXX:-$(first_of c++ g++ clang++)}

# shellcheck disable=SC2086 # compilers may carry options
build C $CC -x c -std=gnu11
count C
if [ -n "$CXX" ]; then
	# shellcheck disable=SC2086
	build C++ $CXX -x c++ -std=c++11
	count C++
fi
