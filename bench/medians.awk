# medians.awk - medians, spreads and ratios of the runs that table.awk has read.
#
# The spread of a set of runs is half their range.  A ratio that differs from 1
# by no more than the sum of both spreads is "equal".  Where a larger value is
# better, its ratio is inverted, so that below 1 is always better for rtheap.

# number returns x with three digits, or with all digits before the point.
function number(x)
{
	if (x >= 99.95)
		return sprintf("%.0f", x)
	return sprintf(x >= 9.995 ? "%.1f" : x >= 0.9995 ? "%.2f" : "%.3f", x)
}

# sorted_into sorts the n values of key into v[1..n].
function sorted_into(v, store, key, n, i, k, x)
{
	for (i = 1; i <= n; i++) {
		x = store[key, i]
		for (k = i - 1; k >= 1 && v[k] > x; k--)
			v[k + 1] = v[k]
		v[k + 1] = x
	}
}

function median_of(store, key, n, v)
{
	sorted_into(v, store, key, n)
	return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}

function median(store, key)
{
	return median_of(store, key, runs[key])
}

# spread_of returns half the range of n values, in percent of their median.
function spread_of(store, key, n, v, m)
{
	sorted_into(v, store, key, n)
	m = n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
	return m ? 50 * (v[n] - v[1]) / m : 0
}

function spread(key)
{
	return spread_of(value, key, runs[key])
}

function explicit(heap)
{
	return heap == "glibc" || heap == "mimalloc" || heap == "jemalloc"
}

# best returns the peer of a sort with the best median, or "".
function best(c, free, i, heap, m, found, least)
{
	found = ""
	for (i = 1; i <= nheaps; i++) {
		heap = heap_name[i]
		if (heap ~ /^rtheap/ || explicit(heap) != free || !runs[c, heap])
			continue
		m = median(value, c SUBSEP heap)
		if (better[c] == "more")
			m = -m
		if (found == "" || m < least) {
			found = heap
			least = m
		}
	}
	return found
}

# cell returns a heap's figure, and the peak MiB.
function cell(c, heap)
{
	return number(median(value, c SUBSEP heap)) \
		sprintf(" (%.0f)", median(peak, c SUBSEP heap))
}

# over returns one heap's median divided by another's: "-" if the clock measured
# nothing, "equal" if they differ by no more than the spread.
function over(store, above, below, a, b, s)
{
	a = median(store, above)
	b = median(store, below)
	if (!a || !b)
		return "-"
	s = (spread_of(store, above, runs[above]) + \
		spread_of(store, below, runs[below])) / 100
	if (a / b - 1 <= s && 1 - a / b <= s)
		return "equal"
	return number(a / b)
}

# value_over returns rtheap's value divided by another heap's.
function value_over(c, heap, mine, other)
{
	mine = c SUBSEP "rtheap"
	other = c SUBSEP heap
	return better[c] == "more" ? over(value, other, mine) : \
		over(value, mine, other)
}

# ratios returns rtheap's value, CPU time and peak MiB, divided by another
# heap's.
function ratios(c, heap, mine, other)
{
	mine = c SUBSEP "rtheap"
	other = c SUBSEP heap
	return value_over(c, heap) " " over(cpu, mine, other) " " \
		over(peak, mine, other)
}

function best_cell(c, heap)
{
	heap = best(c, 0)
	if (heap == "")
		return "- | -"
	return cell(c, heap) " " heap " | " ratios(c, heap)
}

function absent(key)
{
	return key in late ? "> " limit " s" : "-"
}

# ---- Figures that a program measures beside its value ----

function figure_median(key, name)
{
	return median_of(figures, key SUBSEP name, figure_runs[key, name])
}

# figure_text separates a name from its unit: "max_us" becomes "max, us".
function figure_text(name, between)
{
	sub(/_/, between, name)
	return name
}

function figures_add(key, text, n, i, part, field)
{
	n = split(text, field, " ")
	for (i = 1; i <= n; i++) {
		split(field[i], part, "=")
		if (!((key, part[1]) in figure_runs))
			figure_name[key, ++figure_count[key]] = part[1]
		figures[key, part[1], ++figure_runs[key, part[1]]] = part[2] + 0
	}
}

# most_figures returns the heap that has the most figures in a case, or "".
function most_figures(c, i, key, found, most)
{
	for (i = 1; i <= nheaps; i++) {
		key = c SUBSEP heap_name[i]
		if (figure_count[key] > most) {
			most = figure_count[key]
			found = heap_name[i]
		}
	}
	return found
}

# ---- The text below a table ----

function others_text()
{
	return sprintf("%.0f %% of the processors, at most %.0f %% in one run",
		rows_read ? others / rows_read : 0, most)
}

function caption_all()
{
	return sprintf("%s; medians of %d runs in turn (%d in all); other " \
		"processes had %s.", place, most_runs, rows_read, others_text())
}

# caption returns the line that describes the runs of one case.
function caption(c)
{
	return sprintf("%s; medians of %d runs in turn; other processes had " \
		"%.0f %% of the processors.", place, case_runs[c],
		case_rows[c] ? case_others[c] / case_rows[c] : 0)
}
