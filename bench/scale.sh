#!/bin/sh
# scale.sh - how the heap scales with threads and processors, in one file that
# can be sent to the authors.
#
# usage: srcdir=DIR CC=... bench/scale.sh
#
# Run it in the directory of the build; it writes bench-scale.txt.  N is 1, 2, 4
# and so on up to the number of processors.  It measures:
#
# - N threads of one process that allocate, over N processes of one thread each;
# - a full collection with N markers;
# - an exact read of the statistics beside N threads that run, or allocate;
# - how often locks are taken, and by which functions, if there is valgrind; these
#   counts hardly depend on the machine.
#
# From the environment:
#   RT_SCALE_MIB          MiB that live while marking is measured; 256 by default
#   RT_SCALE_MOST         the largest N
#   RT_SCALE_REPETITIONS  how often each thing is run, 5 by default
set -eu
LC_ALL=C
export LC_ALL
srcdir=${srcdir:-.}
CC=${CC:-cc}
work=bench/scale.build
report=bench-scale.txt
mib=${RT_SCALE_MIB:-256}
most=${RT_SCALE_MOST:-$(getconf _NPROCESSORS_ONLN)}
repetitions=${RT_SCALE_REPETITIONS:-5}
lock='^mutex_lock$' # the function that takes a lock
# shellcheck source=bench/common.sh
. "$srcdir/bench/common.sh"

for number in "$mib" "$most" "$repetitions"; do
	case $number in
	'' | *[!0-9]* | 0*)
		echo "scale: $number: a number is wanted" >&2
		exit 2
		;;
	esac
done

# steps MOST prints 1, 2, 4 and so on, and MOST.
steps() {
	n=1
	while [ $n -lt "$1" ]; do
		echo $n
		n=$((n * 2))
	done
	echo "$1"
}

# ---- The machine ----

limits() {
	for file in /sys/fs/cgroup/cpu.max /sys/fs/cgroup/memory.max \
		/proc/sys/vm/max_map_count /proc/sys/vm/overcommit_memory; do
		[ ! -r $file ] || echo "$file: $(cat $file)"
	done
}

describe() {
	echo "rtheap $(sh "$srcdir/tools/version.sh" \
		"$srcdir/include/rt/version.h"), $(now)"
	machine
	echo "load: $(cut -d ' ' -f 1-3 /proc/loadavg)," \
		"available: $(available) MiB," \
		"first touch of a page: $(page_touch 256) ns"
	command -v lscpu >/dev/null 2>&1 &&
		lscpu | grep -E '^(Socket|Core|Thread|L[123]|NUMA|Hypervisor)'
	limits
	echo "$($CC --version | head -n 1); medians of $repetitions runs"
}

# ---- Medians ----

# medians reads lines "value unit wall cpu peak cpu checksum figure=value...".
medians() {
	awk '
	function median(key, n, i, k, x, v) {
		n = runs[key]
		for (i = 1; i <= n; i++) {
			x = value[key, i]
			for (k = i - 1; k >= 1 && v[k] > x; k--)
				v[k + 1] = v[k]
			v[k + 1] = x
		}
		half = v[n] - v[1]
		return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
	}
	{
		value["", ++runs[""]] = $1
		unit = $2
		for (i = 8; i <= NF; i++) {
			split($i, part, "=")
			if (!(part[1] in runs))
				name[++names] = part[1]
			value[part[1], ++runs[part[1]]] = part[2]
		}
	}
	END {
		if (!runs[""]) {
			print "failed"
			exit
		}
		m = median("")
		printf "%.4g %s +-%.0f%%", m, unit, m ? 50 * half / m : 0
		for (i = 1; i <= names; i++)
			printf "  %s %.4g", name[i], median(name[i])
		printf "\n"
	}'
}

# often PROGRAM ARGUMENT... prints medians of some runs, and reports a failure.
often() {
	program=$1
	shift
	[ -x "$work/$program" ] || compile rtheap \
		"$srcdir/bench/workloads/$program.c" "$work/$program" >&2
	i=0
	while [ $i -lt "$repetitions" ]; do
		"$work/$program" "$@" </dev/null || echo "failed" >&2
		i=$((i + 1))
	done | medians
}

heading() {
	printf '\n== %s\n' "$1"
}

# ---- What is measured ----

threads_and_processes() {
	heading "allocation, N threads over N processes of one thread (1 is perfect)"
	for size in 16 64 1024; do
		for n in $(steps "$most"); do
			echo "$size B, N = $n: $(often scaling $size "$n")"
		done
	done
}

markers() {
	heading "a full collection of $mib MiB, nanoseconds an object, N markers"
	for shape in tree random list array hot; do
		for n in $(steps "$most"); do
			RTDEBUG=gc_threads=$((n - 1))
			export RTDEBUG
			echo "$shape, N = $n: $(often mark $shape "$mib")"
			unset RTDEBUG
		done
	done
}

readings() {
	heading "exact statistics beside N threads, microseconds"
	for what in exact exact-alloc; do
		echo "$what, N = 0: $(often stats $what 0)"
		for n in $(steps $((most * 4 < 256 ? most * 4 : 256))); do
			echo "$what, N = $n: $(often stats $what "$n")"
		done
	done
}

# locks PROGRAM ARGUMENT... prints how often each function takes a lock.
locks() {
	program=$1
	shift
	[ -x "$work/$program-count" ] || bench_cflags=-DPEER_DIVISOR=100 \
		compile rtheap-count "$srcdir/bench/workloads/$program.c" \
		"$work/$program-count" >&2
	echo "$program $*:"
	rm -f "$work"/profile*
	valgrind --tool=callgrind --compress-strings=no \
		--callgrind-out-file="$work/profile" "$work/$program-count" \
		"$@" >"$work/log" 2>&1 || {
		echo "  valgrind failed: $(tail -n 1 "$work/log")"
		return
	}
	awk -v lock="$lock" '
	/^fn=/ { fn = substr($0, 4) }
	/^cfn=/ { callee = substr($0, 5) }
	/^calls=/ && callee ~ lock {
		split($1, part, "=")
		n[fn] += part[2]
		total += part[2]
	}
	END {
		printf "  %d in all", total
		for (f in n)
			printf "  %s %d", f, n[f]
		printf "\n"
	}' "$work/profile"
}

lock_counts() {
	heading "locks taken (in runs that are a hundred times shorter)"
	command -v valgrind >/dev/null 2>&1 || {
		echo "not counted: there is no valgrind"
		return
	}
	for n in $(steps "$([ "$most" -lt 8 ] && echo "$most" || echo 8)"); do
		locks alloc 64 scan "$n"
		locks larson "$n" 10000 264 264
	done
	locks arrays 64
	locks mark random 8
	locks mark tree 8
}

# This is a function so that the shell reads the whole file before the long run.
main() {
	rm -rf "$work"
	mkdir -p "$work"
	{
		describe
		threads_and_processes
		markers
		readings
		lock_counts
	} | tee "$report"
	echo "The file to send is $PWD/$report." >&2
}

main
