#!/bin/sh
# port_mruby.sh - builds mruby as it is and on rtheap, and compares them.
#
# usage: srcdir=DIR CC=... examples/ports/mruby/port_mruby.sh [bench]
#
# Run it in the directory of the build.  It fetches Debian's source package with
# apt-get, from where this machine has its packages, into a folder of its own.
# apt checks the signatures, and nothing of the system changes.  Then mruby's
# own tests run on both.  With "bench", its benchmarks run on both instead;
# RT_REPETITIONS says how often, 5 times by default.
#
# Exits with 77 if something that this needs is missing.
set -eu
LC_ALL=C
export LC_ALL
srcdir=$(cd "${srcdir:-.}" && pwd)
port=$srcdir/examples/ports/mruby
mkdir -p examples/ports/mruby/build
work=$(cd examples/ports/mruby/build && pwd)
top=$(pwd)
version=3.1.0
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
# shellcheck source=examples/ports/mruby/compare.sh
. "$port/compare.sh"

missing() {
	skip 59 "comparisons with mruby" "$@"
	exit 77
}

need() {
	command -v "$1" >/dev/null || missing "there is no $1" "$2"
}

# ---- the source ----

# source_lists writes the machine's lists of packages as lists of sources.
source_lists() {
	list='' parts=''
	eval "$(apt-config shell list Dir::Etc::sourcelist/f \
		parts Dir::Etc::sourceparts/d)"
	mkdir -p "$work/apt/parts"
	: >"$work/apt/sources.list"
	for file in "$list" "$parts"/*.list; do
		[ ! -f "$file" ] || sed -n \
			's/^[[:space:]]*deb[[:space:]]/deb-src /p' "$file"
	done >"$work/apt/sources.list"
	for file in "$parts"/*.sources; do
		[ ! -f "$file" ] || sed 's/^Types:.*/Types: deb-src/' "$file" \
			>"$work/apt/parts/${file##*/}"
	done
}

# Commands that the machine runs after an update or an installation are left
# out.
apt_conf() {
	cat <<-END
		#clear APT::Update;
		#clear DPkg::Post-Invoke;
		Dir::Etc::sourcelist "$work/apt/sources.list";
		Dir::Etc::sourceparts "$work/apt/parts";
		Dir::State "$work/apt/state";
		Dir::State::status "$status";
		Dir::Cache "$work/apt/cache";
		Acquire::Retries "3";
		APT::Get::AllowUnauthenticated "false";
		APT::Sandbox::User "root";
	END
}

fetch() {
	[ ! -d "$work/mruby-$version" ] || return 0
	need apt-get apt
	need dpkg-source dpkg-dev
	rm -rf "$work/apt"
	mkdir -p "$work/apt/state/lists/partial" \
		"$work/apt/cache/archives/partial"
	status=''
	eval "$(apt-config shell status Dir::State::status/f)"
	source_lists
	apt_conf >"$work/apt/apt.conf"
	apt-get -qq -c "$work/apt/apt.conf" update >"$work/apt.log" 2>&1 || :
	full=$(apt-cache -c "$work/apt/apt.conf" showsrc mruby 2>/dev/null |
		sed -n "s/^Version: \($version-.*\)/\1/p" | sort -u | tail -n 1)
	[ -n "$full" ] ||
		missing "apt finds no source package mruby $version"
	(cd "$work/apt" && apt-get -qq -c apt.conf source "mruby=$full") \
		>>"$work/apt.log" 2>&1 ||
		missing "mruby $full cannot be fetched"
	mv "$work/apt/mruby-$version" "$work"
}

# ---- two builds ----

# rake_in NAME TASK... runs mruby's own build in one of the two copies.
rake_in() (
	cd "$work/$1"
	shift
	MRUBY_CONFIG=$work/config.rb
	export MRUBY_CONFIG
	rake "$@"
)

build() {
	# rake builds all again if this file is newer.
	cmp -s "$port/config.rb" "$work/config.rb" ||
		cp "$port/config.rb" "$work/config.rb"
	if [ ! -d "$work/stock" ]; then
		cp -R "$work/mruby-$version" "$work/stock"
	fi
	rake_in stock all test:build >"$work/stock-build.log" 2>&1 || {
		tail -n 30 "$work/stock-build.log"
		return 1
	}
	if [ ! -d "$work/ported" ]; then
		cp -R "$work/mruby-$version" "$work/ported"
		patch -s -d "$work/ported" -p1 <"$port/mruby.patch"
	fi
	cmp -s "$port/gc.c" "$work/ported/src/gc.c" ||
		cp "$port/gc.c" "$work/ported/src/gc.c"
	cmp -s "$port/rtheap.h" "$work/ported/include/mruby/rtheap.h" ||
		cp "$port/rtheap.h" "$work/ported/include/mruby/rtheap.h"
	# rake does not see that the library is newer.
	rm -f "$work"/ported/build/host/bin/*
	RTHEAP_CFLAGS=-I$srcdir/include
	RTHEAP_LIBS="$top/librtheap.a -lpthread"
	export RTHEAP_CFLAGS RTHEAP_LIBS
	rake_in ported all test:build >"$work/ported-build.log" 2>&1 || {
		tail -n 30 "$work/ported-build.log"
		return 1
	}
}

# ---- the tests ----

# test_run NAME TREE VARIABLE... runs the tests on one of the two builds.  It
# leaves their log, what they write to stderr, and the port's notes.
test_run() {
	name=$1
	tree=$2
	shift 2
	rm -f "$work/$name.notes"
	: >"$work/$name.log"
	: >"$work/$name.err"
	for task in lib bin; do
		(
			MRUBY_NOTES=$work/$name.notes
			export MRUBY_NOTES
			for variable; do export "${variable?}"; done
			rake_in "$tree" -v "test:run:$task"
		) >>"$work/$name.log" 2>"$work/part" && status=0 || status=$?
		echo "test:run:$task: status $status" >>"$work/$name.log"
		# rake's own status does not tell a crash from a test that fails.
		grep '^Command failed' "$work/part" >>"$work/$name.log" || :
		cat "$work/part" >>"$work/$name.err"
	done
}

# say STATUS WHAT FILE counts a check, and if it is broken prints a part of what
# it had to say.
say() {
	verdict "$1" "$2"
	[ "$1" = 0 ] || head -n 40 "$3"
}

# compare NAME VARIABLE... runs the tests on the port and compares their ends.
compare() {
	run=$1
	shift
	test_run "$run" ported "$@"
	alike_logs "$work/$run.log" "$work/ported" "$work/stock.log" \
		"$work/stock" >"$work/$run.differ" && same=0 || same=1
	say "$same" "mruby's tests end as in mruby itself: $run" "$work/$run.differ"
	[ "$same" = 0 ] || tail -n 20 "$work/$run.err"
	as_many "$work/plain.notes" "$work/$run.notes" && same=0 || same=1
	verdict "$same" "as many processes leave notes: $run"
}

# noted NAME CONDITION [N]: the notes of each process of a run say so.
noted() {
	run=$1
	what=$*
	shift
	condition=$1
	shift
	"$condition" "$work/$run.notes" "$@" >"$work/$run.wrong" &&
		so=0 || so=1
	say "$so" "the notes of each process: $what" "$work/$run.wrong"
}

# alike NAME VARIABLE... runs objects.rb on the port and compares the output.
alike() {
	run=$1
	shift
	rm -f "$work/$run.notes"
	env MRUBY_NOTES="$work/$run.notes" "$@" "$work/ported/bin/mruby" \
		"$port/objects.rb" >"$work/$run.out" 2>&1 && status=0 || status=$?
	echo "status $status" >>"$work/$run.out"
	diff "$work/objects.out" "$work/$run.out" >"$work/$run.differ" &&
		same=0 || same=1
	say "$same" "objects.rb: $run" "$work/$run.differ"
}

run_tests() {
	test_run stock stock
	is_whole "$work/stock.log" && ran=0 || ran=1
	verdict "$ran" "mruby's tests on mruby itself"
	compare plain MRUBY_VERIFY=1
	noted plain verified
	noted plain asked 1
	compare gcstress MRUBY_VERIFY=1 RTDEBUG=gcstress=100,clobberfree=1
	noted gcstress verified
	noted gcstress collected 100
	noted gcstress overwritten
	compare markers MRUBY_VERIFY=1 RTDEBUG=gcstress=100,gc_threads=1
	noted markers verified
	noted markers collected 100
	some "$work/markers.notes" helped && marks=0 || marks=1
	verdict "$marks" "a second marker marks"
	compare checkmark RTDEBUG=gcstress=100,checkmark=1
	noted checkmark collected 100
	noted checkmark asked 2
	compare each-allocation RTDEBUG=gcstress=1,clobberfree=1
	noted each-allocation collected 1
	noted each-allocation overwritten
	compare tracecheck RTDEBUG=gcstress=100,tracecheck=1
	noted tracecheck collected 100
	noted tracecheck asked 2
	told "$work/tracecheck.err" >"$work/told" && none=0 || none=1
	say "$none" "a reference is untold: tracecheck" "$work/told"
	run_objects
	echo "each run of mruby's tests: $(sums "$work/stock.log" | tr '\n' ' ')"
}

run_objects() {
	"$work/stock/bin/mruby" "$port/objects.rb" >"$work/objects.out" 2>&1 &&
		status=0 || status=$?
	echo "status $status" >>"$work/objects.out"
	alike objects-plain MRUBY_VERIFY=1
	noted objects-plain verified
	alike objects-gcstress RTDEBUG=gcstress=1000,clobberfree=1
	noted objects-gcstress collected 1000
	noted objects-gcstress overwritten
	alike objects-tracecheck RTDEBUG=gcstress=10000,tracecheck=1
	noted objects-tracecheck collected 10000
	noted objects-tracecheck asked 2
}

# ---- what has changed ----

# run_sizes: README.md counts exactly the lines that were changed.
run_sizes() {
	numbers=$(changes "$work/mruby-$version" "$work/ported")
	[ "$numbers" = "$(patched "$port/mruby.patch")" ] && same=0 || same=1
	verdict "$same" "mruby.patch is all that changes: $numbers"
	# shellcheck disable=SC2086 # three numbers
	sizes $numbers "$port/rtheap.h"
}

# ---- forgotten references ----

# without STATEMENT prints gc.c without it.  Returns false if it is not there
# exactly once.
without() {
	awk -v what="$1" '
		(at = index($0, what)) {
			n++
			$0 = substr($0, 1, at - 1) ";" \
				substr($0, at + length(what))
		}
		{ print }
		END { exit n != 1 }' "$port/gc.c"
}

# link SOURCE PROGRAM builds mruby with another gc.c.
link() {
	host=$work/ported/build/host
	eval "set -- \"\$1\" \"\$2\" $(sed -n \
		's/^MRUBY_CFLAGS = //p' "$host/lib/libmruby.flags.mak")"
	source=$1
	program=$2
	shift 2
	gcc "$@" -O1 -o "$program" "$source" \
		"$host/mrbgems/mruby-bin-mruby/tools/mruby/mruby.o" \
		"$host/lib/libmruby.a" "$top/librtheap.a" -lm -lpthread
}

# look PROGRAM runs forgotten.rb, in which the only collection is at the end.
look() {
	RTDEBUG=tracecheck=1 RTGC=off "$1" "$port/forgotten.rb" 2>&1
}

# forgotten TYPE OFFSET STATEMENT is true if tracecheck names this and nothing
# else.  The program may fail after that.
forgotten() {
	without "$3" >"$work/forgetful.c" &&
		link "$work/forgetful.c" "$work/forgetful" || return
	look "$work/forgetful" 2>/dev/null |
		grep 'rtheap: tracecheck: ' >"$work/report" || return
	! grep -v "^rtheap: tracecheck: object[a-z ]* at 0x[0-9a-f]* \"$1\", \
offset $2: untold reference to " "$work/report"
}

run_forgotten() {
	[ "$(look "$work/ported/bin/mruby")" = 8 ] && same=0 || same=1
	verdict "$same" "forgotten.rb on a port that forgets nothing"
	n=0
	while IFS='	' read -r type offset statement; do
		forgotten "$type" "$offset" "$statement" </dev/null &&
			named=0 || named=1
		verdict "$named" "tracecheck names what lacks: $statement"
		n=$((n + 1))
	done <<-END
		$(grep -v '^#' "$port/forgotten.list")
	END
	echo "references that were forgotten: $n"
}

# ---- the benchmarks ----

# run_once NAME PROGRAM prints processor seconds and KiB at the peak.
run_once() {
	/usr/bin/time -o "$work/time" -f '%U %S %M' \
		"$work/$1/bin/mruby" "$2" >/dev/null
	awk '{ print $1 + $2, $3 }' "$work/time"
}

# middle COLUMN FILE prints the median of a column.
middle() {
	cut -d ' ' -f "$1" "$2" | sort -n |
		awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

row() {
	for name in stock ported; do
		echo "$(middle 1 "$work/$name.runs")" \
			"$(middle 2 "$work/$name.runs")"
	done | awk -v name="$1" 'NR == 1 { s = $1; m = $2; next }
		{ printf "| %s | %.2f | %.2f | %.2f | %.1f | %.1f | %.2f |\n",
			name, s, $1, $1 / s, m / 1024, $2 / 1024, $2 / m }'
}

run_benchmarks() {
	[ -x /usr/bin/time ] || missing "there is no /usr/bin/time" time
	echo "| program | mruby, s | port, s | ratio | mruby, MiB | port, MiB | ratio |"
	echo "|---|---:|---:|---:|---:|---:|---:|"
	for program in "$work/stock/benchmark"/bm_*.rb "$port/tree.rb"; do
		: >"$work/stock.runs"
		: >"$work/ported.runs"
		i=0
		while [ $i -lt "${RT_REPETITIONS:-5}" ]; do
			for name in stock ported; do
				run_once $name "$program" >>"$work/$name.runs"
			done
			i=$((i + 1))
		done
		row "$(basename "$program" .rb)"
	done | tee "$work/rows"
	awk -F '|' '{ sum += log($5) } END {
		printf "| geometric mean | | | %.2f | | | |\n", exp(sum / NR) }' \
		"$work/rows"
}

[ -f librtheap.a ] || missing "there is no static library"
need rake rake
need ruby ruby
need bison bison
fetch
build || {
	verdict 1 "the builds"
	verdict_sum
	exit 1
}
if [ "${1:-}" = bench ]; then
	run_benchmarks
	exit
fi
run_sizes
run_tests
run_forgotten
verdict_sum
