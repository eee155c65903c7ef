#!/bin/sh
# version.sh - prints MAJOR.MINOR.MICRO of a version.h.
# usage: version.sh include/rt/version.h
awk '
/^#define RT_VERSION_(MAJOR|MINOR|MICRO)[ \t]/ { part[$2] = $3 }
END {
	version = part["RT_VERSION_MAJOR"] "." part["RT_VERSION_MINOR"] "." \
		part["RT_VERSION_MICRO"]
	if (version !~ /^[0-9]+\.[0-9]+\.[0-9]+$/)
		exit 1
	printf "%s", version
}' "$1"
