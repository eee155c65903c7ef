#!/bin/sh
# probes.sh - the shared library has the probes of runtime/os/probe.h, with as
# many arguments, and no others.
#
# usage: [srcdir=DIR] [top_builddir=DIR] RT_PROBES_CPPFLAGS=... test/scripts/probes.sh
set -u
LC_ALL=C
export LC_ALL
srcdir=${srcdir:-.}
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
shared=${top_builddir:-.}/.libs/librtheap.so
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

# listed prints the name and the number of arguments of each probe in probe.h.
listed() {
	tr '\n' ' ' <"$srcdir/runtime/os/probe.h" | grep -oE \
		'probe_[a-z_]+\([a-z_, ]*\)[^P]*PROBE[0-9]\([a-z_]+' |
		sed 's/^probe_\([a-z_]*\)(.*PROBE\([0-9]\)(\([a-z_]*\)$/\1 \3 \2/' |
		while read -r macro name count; do
			[ "$macro" = "$name" ] && echo "$name $count"
		done | sort
}

# notes prints a line for each place with a probe: provider, name, arguments.
notes() {
	${READELF:-readelf} -W -n "$shared" 2>/dev/null | awk '
	/Provider: / { provider = $0; sub(/.*Provider: /, "", provider) }
	/^ *Name: / { name = $2 }
	/^ *Arguments:/ { print provider, name, NF - 1 }'
}

if [ ! -f "$shared" ]; then
	skip 4 probes "there is no shared library"
	verdict_sum
	exit
fi
listed >"$dir/listed"
notes >"$dir/notes"
macros=$(grep -c '^#define probe_' "$srcdir/runtime/os/probe.h")
[ "$(wc -l <"$dir/listed")" = "$macros" ]
verdict $? "each macro of probe.h has the name of its probe"
if [ -z "${RT_PROBES_CPPFLAGS-}" ]; then
	[ ! -s "$dir/notes" ]
	verdict $? "a library without probes has no notes"
	skip 2 probes "configured without sys/sdt.h" systemtap-sdt-dev
	verdict_sum
	exit
fi
! grep -v '^rtheap ' "$dir/notes"
verdict $? "the provider is rtheap"
sed 's/^rtheap //' "$dir/notes" | sort -u | diff "$dir/listed" -
verdict $? "the library has the probes of probe.h, and no others"
verdict_sum
