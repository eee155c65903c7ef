# shellcheck shell=sh
# found.sh - which heaps are present, and their versions; part of peers.sh.
: "${srcdir:?}" "${work:?}" "${unpacked:?}" "${asked:?}"

# find_unpacked sets go_root, or sets go_missing to the reason why there is no
# Go.  It also sets mimalloc_root, which is empty if the installed mimalloc is
# used.
find_unpacked() {
	mimalloc_root=
	go_missing="not asked for"
	case " $asked " in
	*' mimalloc '*) find_mimalloc ;;
	esac
	case " $asked " in
	*' go '*) find_go ;;
	esac
}

find_mimalloc() {
	mimalloc_root=$(sh "$srcdir/bench/unpack.sh" "$unpacked" mimalloc \
		2>/dev/null) || mimalloc_root=
	[ -z "$mimalloc_root" ] || probe mimalloc || mimalloc_root=
}

find_go() {
	case ${RT_GO-} in
	'') go_root=$(sh "$srcdir/bench/unpack.sh" "$unpacked" go \
		2>"$work/unpack.log") ||
		go_missing=$(tail -n 1 "$work/unpack.log") ;;
	none) go_missing="not wanted" ;;
	*)
		go_root=$RT_GO
		go_missing="no Go that runs in $RT_GO"
		;;
	esac
}

# probe HEAP compiles and runs a program that allocates; it fails if either
# fails.
probe() {
	cat >"$work/probe.c" <<-'END'
		#include "harness.h"

		int main(void)
		{
			heap_begin();
			heap_free(peer_alloc(16));
			return 0;
		}
	END
	compile "$1" "$work/probe.c" "$work/probe" >"$work/probe.log" 2>&1 &&
		"$work/probe" >>"$work/probe.log" 2>&1
}

# installed HEAP fails if the heap is missing; $why may then have the reason.
installed() {
	why=
	if [ "$1" = go ]; then
		why=${go_missing-}
		[ -n "${go_root-}" ] && "$go_root/bin/go" version >/dev/null
		return
	fi
	probe "$1"
}

# macros HEADER TEXT OPTION... prints TEXT with its macros expanded.
macros() {
	header=$1
	text=$2
	shift 2
	printf '#include <%s>\n%s\n' "$header" "$text" |
		$CC "$@" -E -P - 2>/dev/null | tail -n 1 | tr -d ' "'
}

# dotted prints 209 as 2.0.9, and 30503 as 3.5.3.
dotted() {
	awk '{
		by = length($1) > 3 ? 100 : 10
		printf "%d.%d.%d", $1 / by / by, $1 / by % by, $1 % by
	}'
}

version() {
	case $1 in
	rtheap-old) git -C "$RT_OLD" log -1 --format='%h' 2>/dev/null || : ;;
	rtheap*) sh "$srcdir/tools/version.sh" \
		"$srcdir/include/rt/version.h" ;;
	boehm*) macros gc/gc.h 'GC_VERSION_MAJOR.GC_VERSION_MINOR.GC_VERSION_MICRO' ;;
	glibc) getconf GNU_LIBC_VERSION | sed 's/.* //' ;;
	mimalloc) macros mimalloc.h MI_MALLOC_VERSION \
		"-I${mimalloc_root:-/nonexistent}/usr/include" | dotted ;;
	jemalloc) macros jemalloc/jemalloc.h JEMALLOC_VERSION | sed 's/-g.*//' ;;
	go) "$go_root/bin/go" version | sed 's/.*go\([0-9][^ ]*\).*/\1/' ;;
	whippet) git -C "$RT_WHIPPET" log -1 --format='%cs' 2>/dev/null || : ;;
	esac
}

# find_heaps sets heaps, versions and missing.
find_heaps() {
	heaps=
	versions=
	missing=
	for heap in $asked; do
		if installed "$heap"; then
			heaps="$heaps $heap"
			versions="$versions${versions:+, }$heap $(version "$heap")"
		else
			missing="$missing${missing:+, }$heap${why:+ ($why)}"
		fi
	done
	case "$heaps " in
	*' rtheap '*) return ;;
	esac
	cat "$work/probe.log" >&2
	exit 1
}
