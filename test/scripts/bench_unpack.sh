#!/bin/sh
# bench_unpack.sh - bench/unpack.sh takes packages from where apt's own
# configuration says, and reports why if it cannot.
#
# apt and dpkg are replaced here: nothing is fetched, and no network is needed.
#
# usage: srcdir=DIR test/scripts/bench_unpack.sh
set -u
LC_ALL=C
export LC_ALL
srcdir=${srcdir:-.}
# shellcheck source=test/scripts/verdict.sh
. "$srcdir/test/scripts/verdict.sh"
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/bin"

# stand_in NAME: makes a command of that name that does what standard input
# says.
stand_in() {
	{
		echo '#!/bin/sh'
		cat
	} >"$dir/bin/$1"
	chmod +x "$dir/bin/$1"
}

unpack() {
	PATH=$dir/bin:$PATH sh "$srcdir/bench/unpack.sh" "$dir/out" go \
		>"$dir/printed" 2>"$dir/why"
}

# refused WHAT: requires that it fails, gives a reason and leaves nothing half
# done.
refused() {
	! unpack && [ -s "$dir/why" ] && [ ! -s "$dir/printed" ] &&
		[ ! -e "$dir/out/go" ]
	verdict $? "$1"
}

codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null)
for name in apt-get apt-cache dpkg-deb; do
	stand_in $name </dev/null
done
refused "without an archive in apt's configuration there is a reason"

if grep -qx 'ID=debian' /etc/os-release 2>/dev/null; then
	stand_in apt-get <<-END
		case \$1 in
		indextargets)
			echo "contrib $codename file:/not/this"
			echo "main $codename file:/the/archive /keys/debian.gpg"
			;;
		-q) exit 100 ;; # a suite is missing: update complains
		-qq) : >some.deb ;;
		esac
	END
	refused "without a package there is a reason"
	grep -q "no go in $codename-backports stable-backports" "$dir/why"
	verdict $? "the reason names the suites"
	grep -qx "deb \[signed-by=/keys/debian.gpg\] file:/the/archive $codename-backports main" \
		"$dir/out/apt/sources.list"
	verdict $? "the source is apt's own archive, with its key"

	stand_in apt-cache <<-'END'
		echo "golang-1.9-go - old"
		echo "golang-1.27-go - new"
		echo "golang-1.26-go - older"
	END
	stand_in dpkg-deb <<-'END'
		exit 1
	END
	refused "a package that cannot be unpacked leaves nothing"

	stand_in dpkg-deb <<-'END'
		bin=$3/usr/lib/go-1.27/bin
		mkdir -p "$bin"
		echo 'exit 0' >"$bin/go"
		chmod +x "$bin/go"
	END
	unpack
	verdict $? "a package is unpacked"
	[ "$(cat "$dir/printed")" = "$dir/out/go/usr/lib/go-1.27" ]
	verdict $? "the root of the tree is printed"
	stand_in apt-get </dev/null
	unpack
	verdict $? "what is there is not fetched again"
fi
verdict_sum
