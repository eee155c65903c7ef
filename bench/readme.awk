# readme.awk - the table of README.md, and where a peer is ahead; a part of
# table.awk.

# ---- Where a peer is ahead ----

# ahead returns "title (Nx HEAP)" of a sort of heap in a case, or "".
function ahead(c, free, heap, r)
{
	heap = best(c, free)
	r = heap == "" ? "-" : value_over(c, heap)
	return r + 0 > 1 ? title[c] " (" r " x " heap ")" : ""
}

# behind_text returns the cases in which a sort of heap is ahead of rtheap.
function behind_text(free, i, text, a)
{
	for (i = 1; i <= ncases; i++) {
		a = runs[case_name[i], "rtheap"] ? ahead(case_name[i], free) : ""
		if (a != "")
			text = text (text == "" ? "" : "; ") a
	}
	return text == "" ? "none" : text
}

# folded returns text in lines of at most 80 columns.
function folded(text, n, i, word, line, out)
{
	n = split(text, word, " ")
	for (i = 1; i <= n; i++) {
		if (length(line) + 1 + length(word[i]) > 80) {
			out = out line "\n"
			line = word[i]
		} else {
			line = line (line == "" ? "" : " ") word[i]
		}
	}
	return out line
}

# peaks_text compares peak memory with the collector that has the least.
function peaks_text(i, k, c, heap, least, m, mine, r, met, of, worst, where)
{
	for (i = 1; i <= ncases; i++) {
		c = case_name[i]
		least = ""
		for (k = 1; k <= nheaps; k++) {
			heap = heap_name[k]
			if (heap ~ /^rtheap/ || explicit(heap) || !runs[c, heap])
				continue
			m = median(peak, c SUBSEP heap)
			least = least == "" || m < least ? m : least
		}
		if (!least || !runs[c, "rtheap"])
			continue
		mine = median(peak, c SUBSEP "rtheap")
		of++
		met += mine <= least * 1.1
		if (mine / least > worst) {
			worst = mine / least
			where = sprintf("%s (%.0f MiB instead of %.0f)", title[c],
				mine, least)
		}
	}
	return of ? "Its peak memory is at most 1.1 times the least of any " \
		"other collector in " met " of " of " cases.  It is farthest " \
		"above that in: " where "." : ""
}

function behind_print()
{
	print "A factor in brackets says how far rtheap is behind the heap " \
		"named with it."
	print ""
	print folded("A collector is ahead of rtheap in: " behind_text(0) ".")
	print ""
	print folded("A malloc, which is told when an object dies, is ahead in: " \
		behind_text(1) ".")
	print ""
	print folded(peaks_text())
}

# behind_worst returns in how many cases a sort of heap is ahead, and the three
# in which it is farthest ahead.
function behind_worst(free, i, k, a, r, n, of, text, worst, where)
{
	for (i = 1; i <= ncases; i++) {
		if (!runs[case_name[i], "rtheap"] || best(case_name[i], free) == "")
			continue
		of++
		if ((a = ahead(case_name[i], free)) == "")
			continue
		n++
		r = value_over(case_name[i], best(case_name[i], free)) + 0
		for (k = n < 3 ? n : 4; k > 1 && worst[k - 1] < r; k--) {
			worst[k] = worst[k - 1]
			where[k] = where[k - 1]
		}
		worst[k] = r
		where[k] = a
	}
	text = (n ? n : "none") " of " of + 0 " cases"
	for (k = 1; k <= 3 && k <= n; k++)
		text = text (k == 1 ? ", farthest in: " : "; ") where[k]
	return text
}

function behind_short()
{
	print "A factor in brackets says how far rtheap is behind the heap " \
		"named with it."
	print ""
	print folded("A collector is ahead of rtheap in " behind_worst(0) ".")
	print ""
	print folded("A malloc, which is told when an object dies, is ahead in " \
		behind_worst(1) ".")
	print ""
	print folded(peaks_text())
	print ""
	print folded("[doc/peers/table.md](doc/peers/table.md) names all cases.")
}

# ---- The table ----

# row_store copies the values of a row to shown[case, heap, row, i].
function row_store(c, figure, row, i, h, k, key, n)
{
	for (i = 1; i <= nheaps; i++) {
		key = c SUBSEP heap_name[i]
		n = figure == "" ? runs[key] : figure_runs[key, figure]
		shown_runs[row, heap_name[i]] = n
		for (k = 1; k <= n; k++)
			shown[row, heap_name[i], k] = figure == "" ? \
				value[key, k] : figures[key, figure, k]
	}
}

function shown_median(row, heap)
{
	return median_of(shown, row SUBSEP heap, shown_runs[row, heap])
}

# is_best returns whether no heap of the row is ahead of this one by more than
# the spread.
function is_best(c, figure, row, heap, i, m, other, s)
{
	m = shown_median(row, heap)
	for (i = 1; i <= nheaps; i++) {
		if (!in_readme(heap_name[i]) || !shown_runs[row, heap_name[i]])
			continue
		other = shown_median(row, heap_name[i])
		s = spread_of(shown, row SUBSEP heap, \
			shown_runs[row, heap]) + spread_of(shown, \
			row SUBSEP heap_name[i], shown_runs[row, heap_name[i]])
		if (figure == "" && better[c] == "more" ? \
			other > m * (1 + s / 100) : m > other * (1 + s / 100))
			return 0
	}
	return 1
}

function in_readme(heap)
{
	return heap != "jemalloc" && heap != "glibc"
}

# peak_row has the peak MiB below a row whose title asks for it.
function peak_row(c, row, i, heap)
{
	printf "| peak MiB |"
	for (i = 1; i <= nheaps; i++) {
		heap = heap_name[i]
		if (in_readme(heap))
			printf " %s |", shown_runs[row, heap] ? \
				sprintf("%.0f", median(peak, c SUBSEP heap)) : ""
	}
	printf "\n"
}

function readme_row(c, text, row, at, figure, peaks, i, heap, shows)
{
	at = index(text, "=")
	figure = at ? substr(text, at + 1) : ""
	peaks = sub(/ \(peak MiB\)/, "", text)
	row_store(c, figure, row)
	printf "| %s |", at ? substr(text, 1, at - 1) : text
	for (i = 1; i <= nheaps; i++) {
		heap = heap_name[i]
		if (!in_readme(heap))
			continue
		shows = ""
		if (shown_runs[row, heap]) {
			shows = number(shown_median(row, heap))
			if (is_best(c, figure, row, heap))
				shows = "**" shows "**"
		}
		printf " %s |", shows
	}
	printf "\n"
	if (peaks)
		peak_row(c, row)
}

function readme_rows(c, n, i, text)
{
	n = readme[c] == "-" ? 0 : split(readme[c], text, ";")
	for (i = 1; i <= n; i++)
		readme_row(c, text[i], c SUBSEP i)
}

# spread_median returns the median of the spreads of rtheap's values, in
# percent.
function spread_median(i, n, v)
{
	for (i = 1; i <= ncases; i++)
		if (runs[case_name[i], "rtheap"])
			v["", ++n] = spread(case_name[i] SUBSEP "rtheap")
	return n ? median_of(v, "", n) : 0
}

function readme_heading(i)
{
	print folded(place ".  Medians of " most_runs " runs in turn; half " \
		"their range is " sprintf("%.0f", spread_median()) " % in the " \
		"median row.  Other processes had " others_text() ".  The best " \
		"figure of a row is in bold, and so is each that is behind it " \
		"by no more than the spread.")
	printf "\n| |"
	for (i = 1; i <= nheaps; i++)
		if (in_readme(heap_name[i]))
			printf " %s |", heap_name[i]
	printf "\n|---|"
	for (i = 1; i <= nheaps; i++)
		if (in_readme(heap_name[i]))
			printf "---:|"
	printf "\n"
}
