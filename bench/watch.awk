# watch.awk - the tables of bench/watch.sh.
#
# usage: awk -f watch.awk [-v series=1] ROWS RESULT
#
# ROWS has name, settings, command and aims, with tabs between; RESULT has row,
# setting, and a line of the program's.  The first table has the figures: the
# median of all runs, and half their range in percent of it.  With series, the
# output is the last run of each setting instead, over time.

BEGIN { FS = "\t" }

FNR == NR {
	row[++nrows] = $1
	settings[$1] = $2
	aims[$1] = $4
	next
}
$3 ~ /^at / { sample($1, $2, $3); next }
{ figures($1, $2, $3) }
END {
	if (series)
		show_series()
	else
		show_figures()
}

# ---- what was measured ----

function add(key, name, value)
{
	if (!((key, name) in runs) && !((row_of[key], name) in known)) {
		known[row_of[key], name]
		figure[row_of[key], ++nfigures[row_of[key]]] = name
	}
	values[key, name, ++runs[key, name]] = value
}

function figures(name, setting, line,   key, part, n, i, pair)
{
	n = split(line, part, " ")
	key = name SUBSEP setting
	row_of[key] = name
	unit[name] = part[2]
	add(key, "value", part[1])
	add(key, "cpu_s", part[4])
	add(key, "peak_MiB", part[5] / 1024)
	for (i = 8; i <= n; i++) {
		split(part[i], pair, "=")
		add(key, pair[1], pair[2])
	}
	ended[key] = 1
}

# A run begins with the sample of its first moment.
function sample(name, setting, line,   key)
{
	key = name SUBSEP setting
	if (ended[key]) {
		nsamples[key] = 0
		ended[key] = 0
	}
	samples[key, ++nsamples[key]] = line
}

# ---- figures ----

function sorted(key, name, v,   n, i, k, x)
{
	n = runs[key, name]
	for (i = 1; i <= n; i++) {
		x = values[key, name, i] + 0
		for (k = i - 1; k >= 1 && v[k] > x; k--)
			v[k + 1] = v[k]
		v[k + 1] = x
	}
	return n
}

function median(key, name,   v, n)
{
	n = sorted(key, name, v)
	return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}

function cell(key, name,   v, n, m)
{
	n = sorted(key, name, v)
	if (n == 0)
		return "-"
	m = median(key, name)
	if (n == 1 || m == 0)
		return sprintf("%.4g", m)
	return sprintf("%.4g ±%.0f%%", m,
		50 * (v[n] - v[1]) / (m < 0 ? -m : m))
}

# verdict returns what became of the aim of a figure, or "-".
function verdict(name, fig,   n, i, aim, part, bound, list, missed, k, of)
{
	n = split(aims[name], aim, " ")
	for (i = 1; i <= n; i++) {
		split(aim[i], part, "<=")
		if (part[1] != fig)
			continue
		bound = part[2] + 0
		k = split(settings[name], list, " ")
		if (part[2] ~ /\*first$/)
			bound *= median(name SUBSEP list[1], fig)
		missed = ""
		for (of = 1; of <= k; of++)
			if (!runs[name SUBSEP list[of], fig] ||
			    median(name SUBSEP list[of], fig) > bound)
				missed = missed (missed ? ", " : "") list[of]
		sub(/\*first/, " x " list[1], part[2])
		return "<= " part[2] (missed ? ": missed by " missed : "")
	}
	return "-"
}

function show_figures(   r, f, s, n, list, line, last)
{
	for (r = 1; r <= nrows; r++) {
		n = split(settings[row[r]], list, " ")
		if (settings[row[r]] != last) {
			if (last != "")
				print ""
			line = "| row | figure |"
			for (s = 1; s <= n; s++)
				line = line " " list[s] " |"
			print line " aim |"
			gsub(/[^|]+/, "---", line)
			print line "---|"
		}
		last = settings[row[r]]
		for (f = 1; f <= nfigures[row[r]]; f++) {
			line = "| " (f == 1 ? row[r] : "") " | "
			line = line title(row[r], figure[row[r], f]) " |"
			for (s = 1; s <= n; s++)
				line = line " " cell(row[r] SUBSEP list[s],
					figure[row[r], f]) " |"
			print line " " verdict(row[r], figure[row[r], f]) " |"
		}
	}
}

function title(name, fig)
{
	if (fig == "value")
		return "value, " unit[name]
	gsub(/_/, " ", fig)
	sub(/ x$/, ", x", fig)
	sub(/ percent$/, ", %", fig)
	sub(/ MiB s$/, ", MiB/s", fig)
	if (match(fig, / (KiB|MiB|ms|us|s)$/))
		fig = substr(fig, 1, RSTART - 1) "," substr(fig, RSTART)
	return fig
}

# ---- over time ----

function show_series(   r, s, n, list, i, k, part, key, line, rows)
{
	for (r = 1; r <= nrows; r++) {
		n = split(settings[row[r]], list, " ")
		rows = 0
		for (s = 1; s <= n; s++) {
			key = row[r] SUBSEP list[s]
			rows = nsamples[key] > rows ? nsamples[key] : rows
		}
		if (rows == 0)
			continue
		print "\n" row[r] ": MiB resident, in use, goal (0: none), held;" \
			" CPU % of collections in 2 s\n"
		line = "| s |"
		for (s = 1; s <= n; s++)
			line = line " " list[s] " | in use | goal | held | CPU |"
		print line
		gsub(/[^|]+/, "---:", line)
		print line
		for (i = 1; i <= rows; i++) {
			line = ""
			for (s = 1; s <= n; s++) {
				k = split(samples[row[r] SUBSEP list[s], i],
					part, " ")
				line = line (k ? sprintf(" %.0f | %.0f | %.0f |" \
					" %.0f | %.0f |", part[3], part[4],
					part[5], part[6], part[7]) \
					: " | | | | |")
				if (k)
					at = part[2]
			}
			print "| " at " |" line
		}
	}
}
