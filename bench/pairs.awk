# pairs.awk - the table of pairs, from lines of row, setting, processor seconds,
# KiB, collections and checksum.  The table has a line for each setting of each
# row.
#
# The processor time of rtheap at another peak is interpolated, in logarithms,
# between the two settings of rtheap around that peak.  Above the peaks of all
# settings it is the time of the setting with the largest one.
BEGIN {
	FS = "\t"
}

{
	if (!(($1) in seen)) {
		seen[$1] = 1
		row[++nrows] = $1
	}
	if (!(($2) in known)) {
		known[$2] = 1
		setting[++nsettings] = $2
	}
	n = ++runs[$1, $2]
	cpu[$1, $2, n] = $3
	kib[$1, $2, n] = $4
	collections[$1, $2, n] = $5
	if (!($1 in checksum))
		checksum[$1] = $6
	if ($6 != checksum[$1]) {
		print "pairs: checksums differ: " $0 >"/dev/stderr"
		failed = 1
	}
}

function sorted(store, key, v, n, i, k, x)
{
	n = runs[key]
	for (i = 1; i <= n; i++) {
		x = store[key, i] + 0
		for (k = i - 1; k >= 1 && v[k] > x; k--)
			v[k + 1] = v[k]
		v[k + 1] = x
	}
	return n
}

function median(store, key, v, n)
{
	n = sorted(store, key, v)
	return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}

# spread returns half the range, in percent of the median.
function spread(store, key, v, n, m)
{
	n = sorted(store, key, v)
	m = median(store, key)
	return m ? 50 * (v[n] - v[1]) / m : 0
}

function ours(i)
{
	return setting[i] ~ /^rtheap/
}

# least returns the smallest peak of rtheap.
function least(r, i, x, best)
{
	for (i = 1; i <= nsettings; i++) {
		x = median(kib, r SUBSEP setting[i])
		if (ours(i) && (!best || x < best))
			best = x
	}
	return best
}

# cpu_at returns the processor time of rtheap where its peak is p, or 0 if its
# peak is never so low.
function cpu_at(r, p, i, x, below, above, xb, xa, f)
{
	below = above = 0
	for (i = 1; i <= nsettings; i++) {
		if (!ours(i))
			continue
		x = median(kib, r SUBSEP setting[i])
		if (x <= p && (!below || x > xb)) {
			below = i
			xb = x
		}
		if (x >= p && (!above || x < xa)) {
			above = i
			xa = x
		}
	}
	if (!below)
		return 0
	if (!above || xa == xb)
		return median(cpu, r SUBSEP setting[below])
	f = log(p / xb) / log(xa / xb)
	return exp((1 - f) * log(median(cpu, r SUBSEP setting[below])) + \
		f * log(median(cpu, r SUBSEP setting[above])))
}

# took returns what a setting took: seconds, MiB, collections.
function took(r, s, key)
{
	key = r SUBSEP s
	return sprintf("%.3f ±%.0f%% | %.1f | %d", median(cpu, key),
		spread(cpu, key), median(kib, key) / 1024,
		median(collections, key))
}

# against returns the last two cells: rtheap over setting i.
function against(r, i, key, c, m, a)
{
	key = r SUBSEP setting[i]
	c = median(cpu, r SUBSEP "rtheap") / median(cpu, key)
	m = median(kib, r SUBSEP "rtheap") / median(kib, key)
	times[i] += log(c)
	peaks[i] += log(m)
	a = cpu_at(r, median(kib, key)) / median(cpu, key)
	if (a) {
		equal[i] += log(a)
		count[i]++
	}
	return sprintf("%.2f %.2f%s | %s", c, m,
		c > 1 && m > 1 ? " worse" : "",
		a ? sprintf("%.2f", a) : sprintf("peak x %.2f",
			least(r) / median(kib, key)))
}

function mean(i)
{
	return sprintf("%.2f %.2f | %s",
		exp(times[i] / nrows), exp(peaks[i] / nrows),
		count[i] ? sprintf("%.2f of %d",
			exp(equal[i] / count[i]), count[i]) : "-")
}

# line prints a line of the table; only the first of a row has its name.
function line(name, i, cells)
{
	print "| " (name == named ? "" : name) " | " setting[i] " | " cells " |"
	named = name
}

END {
	print "| row | setting | cpu, s | peak, MiB | collections |" \
		" rtheap over it | at its peak |"
	print "|---|---|---:|---:|---:|---|---|"
	for (k = 1; k <= nrows; k++)
		for (i = 1; i <= nsettings; i++)
			line(row[k], i, took(row[k], setting[i]) " | " \
				(ours(i) ? "- | -" : against(row[k], i)))
	for (i = 1; i <= nsettings; i++)
		if (!ours(i))
			line("geometric mean", i, "- | - | - | " mean(i))
	exit failed
}
