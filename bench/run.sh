#!/bin/sh
# run.sh - runs the benches and prints what they measure, the machine first.
#
# usage: srcdir=DIR CC=... CXX=... bench/run.sh
#
# Runs in the directory of the build.  RT_BENCHES in the environment is a list
# of what to run: memstats, alloc, mark and trees, which take times, and count,
# which counts instructions.  All of it takes about two minutes on an idle
# machine.
set -eu
srcdir=${srcdir:-.}
benches=${RT_BENCHES:-memstats alloc mark trees count}

cpu() {
	name=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
	echo "${name:-$(uname -m)}"
}

# script NAME ARGUMENT...: keeps in $printed what a script of ours prints, which
# may be why it was skipped (77).
script() {
	name=$1
	shift
	printed=$("${SHELL:-/bin/sh}" "$srcdir/bench/$name" "$@") || [ $? -eq 77 ]
}

count() {
	printf '\n%-38s %12s\n' "one inline allocation" instructions
	script inline.sh
	printf '%s\n' "$printed" | awk '
		NF == 3 { printf "%-38s %12s\n", $1 ", " $2, $3; next }
		{ print }'
	printf '\n%-38s %12s\n' "all that is executed" instructions
	script count.sh bench/bench_count
	printf '%s\n' "$printed" | awk '
		$1 + 0 {
			count = $1
			sub(/^[^ ]* /, "")
			printf "%-38s %12s\n", $0, count
			next
		}
		{ print }'
}

echo "machine: $(cpu), $(getconf _NPROCESSORS_ONLN) CPUs," \
	"$(uname -sr), $(date -u '+%Y-%m-%d %H:%M UTC')"
echo "load: $(cut -d ' ' -f 1-3 /proc/loadavg)" \
	"(above a few tenths, times are of the load too)"
for bench in $benches; do
	case $bench in
	memstats | alloc | mark | trees) "bench/bench_$bench" ;;
	count) count ;;
	*)
		echo "run.sh: RT_BENCHES: there is no $bench" >&2
		exit 2
		;;
	esac
done
