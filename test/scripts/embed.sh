#!/bin/sh
# embed.sh - the examples compile as C11 and as C++11 without a warning, and
# print what they should, with the static and with the shared library; and
# README.md shows one of them.
#
# In README.md a line "<!-- example -->" comes before a block that is
# examples/hello.c, and "<!-- output -->" before one that is what it prints.  A
# line "<!-- from FILE -->" there or in doc/embedding.md comes before a block of
# lines of examples/FILE.  If it is a diff, these are the lines that it adds; of a
# patch it has lines of any sort.
#
# usage: srcdir=DIR [top_builddir=DIR] CC=... test/scripts/embed.sh [README]
set -u
srcdir=${srcdir:-${top_srcdir:-.}}
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
# shellcheck source=test/scripts/example.sh
. "$srcdir/test/scripts/example.sh"
builddir=${top_builddir:-.}
readme=${1:-$srcdir/README.md}
examples=$srcdir/examples
warnings='-Wall -Wextra -pedantic -Wshadow -Werror'
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
LD_LIBRARY_PATH=$builddir/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

# block MARK: prints the lines of the fenced block after the line <!-- MARK -->.
block() {
	awk -v mark="<!-- $1 -->" '
		$0 == mark { marked = 1; next }
		inside && /^```/ { exit }
		inside { print; next }
		marked && /^```/ { inside = 1 }
	' "$readme"
}

# shows MARK FILE
shows() {
	block "$1" >"$dir/block"
	diff "$examples/$2" "$dir/block"
	verdict $? "$readme shows $2"
}

# cut DOCUMENT: writes each block after a line <!-- from FILE --> to a file of
# its own, NUMBER.FILE, with colons for slashes.
cut() {
	rm -rf "$dir/parts" && mkdir "$dir/parts" &&
		awk -v to="$dir/parts/" '
			/^<!-- from .* -->$/ {
				gsub("/", ":", $3)
				part = to (++n) "." $3
			}
			part && inside && /^```/ { part = inside = ""; next }
			part && inside == "diff" && part !~ /[.]patch$/ {
				if (/^[+]/)
					print substr($0, 2) >part
				next
			}
			part && inside { print >part; next }
			part && /^```/ { inside = substr($0, 4) }
		' "$1"
}

# has_lines FILE PART: true if the part has lines, and the file has them in this
# order.
has_lines() {
	awk 'BEGIN { i = 0 }
		NR == FNR { want[n++] = $0; next }
		$0 == want[i] { i++ }
		END { exit !n || i < n }' "$2" "$1"
}

# shows_parts DOCUMENT
shows_parts() {
	cut "$1"
	for part in "$dir"/parts/*; do
		file=$(echo "${part#*/parts/*.}" | tr : /)
		has_lines "$examples/$file" "$part"
		verdict $? "$1 shows lines of $file"
	done
}

# build NAME PROGRAM ARGUMENT...: returns false if there is a warning.
build() {
	source=$examples/$1.c
	program=$2
	[ "$1" != threads ] || set -- "$@" "$examples/report.c"
	shift 2
	# shellcheck disable=SC2086 # lists of options
	${CC:-cc} ${RT_SANITIZER_CFLAGS-} -std=c11 $warnings \
		-I"$srcdir/include" "$source" -o "$program" "$@" -lpthread
}

# check NAME LIBRARY KIND: compiles and runs, if the library was built.
check() {
	[ -e "$2" ] || return 0
	build "$1" "$dir/$1-$3" "$2"
	verdict $? "$1 compiles with the $3 library"
	example_run "$1" "$dir/$1-$3"
	verdict $? "$1 prints $1.expected with the $3 library"
	tried=$((tried + 1))
}

# check_stressed NAME: it holds no pointer where the collector does not look.
check_stressed() {
	build "$1" "$dir/$1-stressed" -Drt_init=stressed_init "$dir/stressed.o" \
		"$builddir/librtheap.a"
	verdict $? "$1 compiles with another rt_init"
	for n in 1009 1; do
		[ "$1 $n" != "hello 1" ] || continue # check_small
		RTDEBUG=gcstress=$n,clobberfree=1 \
			example_run "$1" "$dir/$1-stressed"
		verdict $? "$1 prints $1.expected with gcstress=$n"
	done
}

# check_small: hello with fewer objects prints the same if each allocation
# collects.
check_small() {
	sed 's/1000000/10000/' "$examples/hello.c" >"$dir/hello.c"
	whole=$examples
	examples=$dir
	build hello "$dir/small" -Drt_init=stressed_init "$dir/stressed.o" \
		"$builddir/librtheap.a"
	verdict $? "a smaller hello compiles"
	examples=$whole
	"$dir/small" >"$dir/small.expected"
	verdict $? "a smaller hello runs"
	RTDEBUG=gcstress=1,clobberfree=1 "$dir/small" |
		diff "$dir/small.expected" -
	verdict $? "a smaller hello prints the same with gcstress=1"
}

# expected_words NAME: the offsets in which the example has old pointers or
# numbers like them on purpose, as a pattern; nothing if it has none.
expected_words() {
	case $1 in
	types) echo 16 ;; # the bytes of a text
	shapes) echo "\\($(seq -s '\|' 8 16 1600)\\)" ;; # the numbers
	trace) echo '\(96\|[1-9][0-9][0-9][0-9]*\)' ;; # above the stack's top
	esac
}

# check_told NAME: its callbacks and bitmaps tell every reference.
check_told() {
	words=$(expected_words "$1")
	RTDEBUG=tracecheck=1 example_run "$1" "$dir/$1-stressed" 2>"$dir/told"
	verdict $? "$1 prints $1.expected while its references are checked"
	if [ "$words" ]; then
		grep -q tracecheck "$dir/told"
		verdict $? "tracecheck finds the words of $1 that are no references"
		sed -i -e "/, offset $words: /d" -e '/: [0-9]* others$/d' \
			"$dir/told"
	fi
	# The address sanitizer has a line about programs with fibers.
	sed -i "/^==[0-9]*==WARNING: ASan doesn't fully support/d" "$dir/told"
	diff /dev/null "$dir/told"
	verdict $? "$1 forgets no reference"
}

# check_samples FILE: the parts of each sample add up, and no counter falls.
check_samples() {
	awk '
		/_total / && $2 < last[$1] { wrong = 1 }
		!/^#/ { last[$1] = $2 }
		/^heap_(used|room|idle|other)_bytes / { sum += $2 }
		/^# EOF/ {
			samples++
			if (sum != last["heap_sys_bytes"])
				wrong = 1
			sum = 0
		}
		END { exit wrong || !samples }
	' "$1"
}

# check_cxx COMPILER PACKAGE: all examples and report.h are C++ as well.
check_cxx() {
	command -v "$1" >/dev/null 2>&1 || {
		skip 3 "examples as C++" "there is no $1" "$2"
		return
	}
	for name in $example_names; do
		# shellcheck disable=SC2086 # a list of options
		"$1" -x c++ -std=c++11 $warnings -I"$srcdir/include" \
			-fsyntax-only "$examples/$name.c"
		verdict $? "$name compiles with $1"
	done
}

# public_functions: prints those that a host calls by name.
public_functions() {
	grep -v -e '^#' -e '_$' -e '_init_sized$' -e '^rt_thread_tls$' \
		"$srcdir/gc/api/symbols.list" | sed 's/_sized$//' # macros call these
	sed -n 's/^static inline .*[ *]\(rt_[a-z_]*[a-z]\)(.*/\1/p' \
		"$srcdir"/include/rt/*.h
}

# check_places: each public function has a place in an example.
check_places() {
	find "$examples" -name '*.[ch]' -exec cat {} + >"$dir/all"
	for name in $(public_functions); do
		grep -qw "$name" "$dir/all"
		verdict $? "an example calls $name"
	done
}

shows example hello.c
shows output hello.expected
shows_parts "$readme"
shows_parts "$srcdir/doc/embedding.md"
tried=0
for name in $example_names; do
	check "$name" "$builddir/librtheap.a" static
	check "$name" "$builddir/.libs/librtheap.so" shared
done
[ $tried -gt 0 ]
verdict $? "there is a library"
for samples in "$dir"/monitor-*.out; do
	check_samples "$samples"
	verdict $? "the numbers in $samples agree"
done

# shellcheck disable=SC2086 # a list of options
${CC:-cc} ${RT_SANITIZER_CFLAGS-} -std=c11 $warnings -I"$srcdir/include" \
	-c "$srcdir/test/scripts/stressed.c" -o "$dir/stressed.o"
verdict $? "stressed.c compiles"
for name in $example_names; do
	check_stressed "$name"
	check_told "$name"
done
check_places
check_small
check_cxx g++ g++
check_cxx clang++ clang

verdict_sum
