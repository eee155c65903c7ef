# shellcheck shell=sh
# common.sh - what the scripts of the benches share: the machine, the library,
# the compiler.  A script must set srcdir, CC and work, a folder of its own.  It
# must run in the directory of the build.
: "${srcdir:?}" "${work:?}" "${CC:?}"

# RT_OLD is a tree, configured and built, of another version of this library.
[ -z "${RT_OLD-}" ] || RT_OLD=$(cd "$RT_OLD" && pwd)

cpu() {
	name=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
	echo "${name:-$(uname -m)}"
}

nodes() {
	set -- /sys/devices/system/node/node[0-9]*
	[ -e "$1" ] && echo $# || echo 1
}

# machine prints the processor, NUMA nodes, kernel and its setting for huge
# pages.
machine() {
	huge=$(sed 's/.*\[\(.*\)\].*/\1/' \
		/sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null || :)
	echo "$(cpu), $(getconf _NPROCESSORS_ONLN) CPUs, NUMA nodes: $(nodes)," \
		"$(uname -sr), huge pages: ${huge:-none}"
}

now() {
	date -u '+%Y-%m-%d %H:%M UTC'
}

# available prints how many MiB a program can have without swapping.
available() {
	awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo
}

# paste_between FILE NAME WITH replaces the text of FILE between the lines <!--
# NAME --> and <!-- end of NAME --> by the file WITH.
paste_between() {
	awk -v name="$2" -v with="$3" '
		$0 == "<!-- end of " name " -->" { inside = 0 }
		!inside { print }
		$0 == "<!-- " name " -->" {
			inside = 1
			while ((getline line < with) > 0)
				print line
		}' "$1" >"$work/pasted" && cat "$work/pasted" >"$1"
}

# module NAME OTHERWISE prints the compiler's options for a library.
module() {
	pkg-config --cflags --libs "$1" 2>/dev/null || echo "$2"
}

# ticks sets busy and total to the processor time of all processes since the
# machine started, in ticks.
ticks() {
	read -r _ user nice system idle iowait irq softirq steal _ </proc/stat
	busy=$((user + nice + system + irq + softirq + steal))
	# shellcheck disable=SC2034 # for the script that reads this file
	total=$((busy + idle + iowait))
}

# shared succeeds if there is a shared library.  If another version has none,
# both are linked statically: a shared library begins more slowly, and takes
# pages of its own.
shared() {
	[ -f "$PWD/.libs/librtheap.so" ] &&
		{ [ -z "${RT_OLD-}" ] || [ -f "$RT_OLD/.libs/librtheap.so" ]; }
}

# library DIR prints options for the shared library of a build, found as if it
# were installed.
library() {
	if shared; then
		echo "$1/.libs/librtheap.so -Wl,-rpath,$1/.libs"
	elif [ -f "$1/librtheap.a" ]; then
		library_static "$1"
	else
		echo "no library in $1" >&2
		return 1
	fi
}

library_static() {
	echo "$1/librtheap.a $(module atomic_ops -latomic_ops)"
}

# mimalloc_options prefers an unpacked mimalloc to an installed one.
mimalloc_options() {
	if [ -z "${mimalloc_root-}" ]; then
		module mimalloc -lmimalloc
		return
	fi
	for lib in "$mimalloc_root"/usr/lib/*/libmimalloc.so; do
		echo "-I$mimalloc_root/usr/include $lib -Wl,-rpath,${lib%/*}"
	done
}

# RT_WHIPPET must have api and libwhippet.a (bench/heaps/whippet.h).
whippet_options() {
	echo "-I$RT_WHIPPET/api -DGC_CONSERVATIVE_ROOTS=1" \
		"-DGC_CONSERVATIVE_TRACE=1 -DGC_PARALLEL=1" \
		"-DGC_ATTRS=\"$RT_WHIPPET/api/mmc-attrs.h\"" \
		"$RT_WHIPPET/libwhippet.a -lm"
}

options() {
	case $1 in
	rtheap-old) echo "-I$RT_OLD/include $(library "$RT_OLD")" ;;
	rtheap-old-count) echo "-I$RT_OLD/include" \
		"$(library_static "$RT_OLD") -Wl,--strip-debug" ;;
	rtheap-count) echo "-I$srcdir/include" \
		"$(library_static "$PWD") -Wl,--strip-debug" ;;
	rtheap*) echo "-I$srcdir/include $(library "$PWD")" ;;
	boehm*) module bdw-gc -lgc ;;
	mimalloc) mimalloc_options ;;
	jemalloc) module jemalloc -ljemalloc ;;
	whippet) whippet_options ;;
	esac
}

# compile HEAP SOURCE OUTPUT uses the options in bench_cflags.  rtheap-count is
# rtheap with the static library, in which every function keeps its name.
compile() {
	adapter=${1%-count}
	adapter=../heaps/$(echo "${adapter%-old}" | tr - _).h
	# shellcheck disable=SC2046,SC2086 # lists of options
	$CC -std=gnu11 -O2 -pthread -I"$srcdir/bench/workloads" \
		-DHEAP="\"$adapter\"" ${bench_cflags-} "$2" -o "$3" \
		$(options "$1")
}

# page_touch MIB prints the nanoseconds that the first touch of a page takes.
page_touch() {
	cat >"$work/touch.c" <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		#include <sys/mman.h>
		#include <time.h>

		int main(int argc, char **argv)
		{
			size_t n = argc > 1 ? strtoull(argv[1], NULL, 10) << 20 : 0;
			volatile char *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			struct timespec a, b;

			if (p == MAP_FAILED)
				return 1;
			clock_gettime(CLOCK_MONOTONIC, &a);
			for (size_t i = 0; i < n; i += 4096)
				p[i] = 1;
			clock_gettime(CLOCK_MONOTONIC, &b);
			printf("%.0f\n", ((double)(b.tv_sec - a.tv_sec) * 1e9 +
				(double)(b.tv_nsec - a.tv_nsec)) * 4096 / n);
			return 0;
		}
	END
	[ -x "$work/touch" ] || $CC -O1 "$work/touch.c" -o "$work/touch"
	"$work/touch" "$1"
}
