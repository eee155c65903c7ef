#!/bin/sh
# embed.sh - the examples compile as C11 and as C++11 without a warning, and
# print what they should, with the static and with the shared library.  Each has
# at most 90 lines, and README.md shows one of them.
#
# In README.md a line "<!-- example -->" comes before a block that is
# examples/hello.c, and "<!-- output -->" before one that is what it prints.  A
# line "<!-- from FILE -->" there or in doc/embedding.md comes before a block of
# lines of examples/FILE.  If the block is a diff of a source, only the lines
# that it adds count.  If FILE is a patch, the block has lines of the patch.
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

# check_length NAME: a reader sees the whole example at once.
check_length() {
	[ "$(wc -l <"$examples/$1.c")" -le 90 ]
	verdict $? "$1.c has at most 90 lines"
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

# check_stressed NAME: the example holds no pointer where the collector does not
# look.
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

# build_changed NAME FOLDER PROGRAM: builds a changed example, which is in the
# folder, with another rt_init.
build_changed() {
	whole=$examples
	examples=$2
	build "$1" "$3" -Drt_init=stressed_init "$dir/stressed.o" \
		"$builddir/librtheap.a"
	built=$?
	examples=$whole
	return $built
}

# check_small: hello with fewer objects prints the same if each allocation
# collects.  An old word of the stack may keep a list alive, so lists are short:
# 90 more objects may be kept before fewer than 99 % are freed.
check_small() {
	sed 's/1000000/10000/; s/% 1000 /% 10 /' "$examples/hello.c" \
		>"$dir/hello.c"
	[ "$(diff "$examples/hello.c" "$dir/hello.c" | grep -c '^>')" = 2 ]
	verdict $? "hello has the lines that make it smaller"
	build_changed hello "$dir" "$dir/small"
	verdict $? "a smaller hello compiles"
	"$dir/small" >"$dir/small.expected"
	verdict $? "a smaller hello runs"
	RTDEBUG=gcstress=1,clobberfree=1 "$dir/small" |
		diff "$dir/small.expected" -
	verdict $? "a smaller hello prints the same with gcstress=1"
}

# expected_words NAME: prints the objects and offsets in which tracecheck finds
# something in the example on purpose.  These are bytes or numbers like
# pointers, words above a stack's top, or the field that forgotten.c is about.
# There are fewer than the lines of one report, so none is counted as one of "N
# others".
expected_words() {
	case $1 in
	types) echo "object text 16" ;;
	shapes) seq 8 16 472 | sed 's/^/RT_TYPED /' ;;
	trace) seq 96 8 408 | sed 's/^/object /' ;;
	forgotten) echo 'table "String" 16' ;;
	esac
}

# untold FILE...: prints each untold reference of the reports in the files as an
# object and an offset, and all other lines as they are.
untold() {
	sed -e 's/^\(rtheap: tracecheck: [^,]*\) at 0x[0-9a-f]*/\1/' \
		-e 's/^rtheap: tracecheck: \(.*\), offset \([0-9]*\)\( (after .*)\)\{0,1\}: untold reference to .*/\1 \2/' \
		"$@" | LC_ALL=C sort
}

# reports PROGRAM: leaves its lines from tracecheck in PROGRAM.told.
# forgotten.c prints them to stdout.
reports() {
	grep -h '^rtheap: tracecheck: ' "$1.out" "$1.err" >"$1.told"
}

# check_told NAME: its callbacks and bitmaps tell every reference.
check_told() {
	program=$dir/$1-stressed
	RTDEBUG=tracecheck=1 example_run "$1" "$program" 2>"$program.err"
	verdict $? "$1 prints $1.expected while its references are checked"
	reports "$program"
	# The address sanitizer has a line about programs with fibers.
	grep -v -e '^rtheap: tracecheck: ' \
		-e "^==[0-9]*==WARNING: ASan doesn't fully support" \
		"$program.err" >>"$program.told"
	expected_words "$1" | LC_ALL=C sort >"$program.words"
	untold "$program.told" | diff "$program.words" -
	verdict $? "$1 forgets no reference, and what looks like one is found"
}

# check_planted NAME SED OBJECT SEQ...: if sed makes the example forget a
# reference, tracecheck names it and finds nothing else that is new.  The object
# and the arguments of seq for the offsets say what it must name.
check_planted() {
	planted="$planted $1"
	what="tracecheck names what $1 forgets with $2"
	program=$dir/planted/$1
	sed "$2" "$examples/$1.c" >"$program.c"
	build_changed "$1" "$dir/planted" "$program"
	verdict $? "$1 compiles with $2"
	# Without the reference the program may do anything.
	(cd "$dir/planted" && RTDEBUG=tracecheck=1 timeout -k 10 60 "$program" \
		>"$program.out" 2>"$program.err")
	reports "$program"
	object=$3
	words=$dir/$1-stressed.words
	shift 3
	seq "$@" | sed "s/^/$object /" | LC_ALL=C sort >"$program.words"
	untold "$program.told" | LC_ALL=C comm -13 "$words" - |
		diff "$program.words" -
	verdict $? "$what"
}

# check_all_planted: each example that describes its objects, by a callback or a
# bitmap, has forgotten something.
check_all_planted() {
	for name in $example_names; do
		grep -q -e '[.>]trace = ' -e 'bitmap = ' "$examples/$name.c" ||
			continue
		case " $planted " in *" $name "*) ;; *) false ;; esac
		verdict $? "$name forgets a reference in this script"
	done
}

# plant makes each of these examples forget references.  Only a reference that is
# not NULL can be missed.  tracecheck does not look at root callbacks.
plant() {
	mkdir "$dir/planted"
	planted=
	check_planted types 's/each\[\] = {1}/each[] = {0}/' object 16 16
	check_planted shapes 's/words\[\] = {1}/words[] = {0}/' \
		RT_TYPED 0 16 464
	check_planted trace 's/rt_trace_ptr(t, c->head);//' object 8 8
	check_planted trace 's/m->stack, m/m->stack + 1, m/' object 16 16
	check_planted forgotten 's/rt_trace_ptr(t, o->items);//' \
		'table "String"' 8 8
	# Fewer entries, so that all are told.
	check_planted pairs 's/ENTRIES = 100/ENTRIES = 20/
		s/rt_trace_pair(.*/(void)pairs;/' 'kind 3' 16 16 320
	# A fiber is told all at once, with its registers.  The last one stays.
	check_planted abandoned 's/rt_trace_stack(.*/(void)t, (void)obj;/
		s/^	ucontext_t context;/	void *note; &/
		s/^	makecontext/	starting->note = rt_alloc(8); &/
		/starting = NULL;/d' 'kind 3' 0 0
	check_all_planted
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

# public_functions: prints the functions that a host calls by name.
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
	check_length "$name"
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
plant
check_places
check_small
check_cxx g++ g++
check_cxx clang++ clang

verdict_sum
