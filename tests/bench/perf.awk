# Reads lines "BYTES RUN PERF LOOP OWN ZEROS ALIGNED PAGES METER" (GB/s; - for what is not known) and prints medians, ratios, and where one is beyond 15 %
# the step on the way from perf's loop to the meter's sample that makes most of the difference.

function sort(x, n,    i, j, kept) {
	for (i = 2; i <= n; i++) {
		kept = x[i]
		for (j = i - 1; j >= 1 && x[j] > kept; j--)
			x[j + 1] = x[j]
		x[j + 1] = kept
	}
}

# Of what is known of one column of one size; - if nothing is.
function median(size, column,    n, i, x) {
	n = 0
	for (i = 1; i <= runs[size]; i++)
		if (seen[size, column, i] != "-")
			x[++n] = seen[size, column, i] + 0
	if (n == 0)
		return "-"
	sort(x, n)
	return n % 2 ? x[(n + 1) / 2] : (x[n / 2] + x[n / 2 + 1]) / 2
}

function size_words(bytes) {
	return bytes >= 1048576 ? bytes / 1048576 " MiB" : bytes / 1024 " KiB"
}

function beyond(ratio) {
	return ratio > 1.15 || ratio < 1 / 1.15
}

# How far one step goes in the direction of all of them together.
function step(size, i,    ratio) {
	ratio = figure[size, i] / figure[size, i - 1]
	return figure[size, LAST] > figure[size, FIRST] ? ratio : 1 / ratio
}

function explain(size,    most, i) {
	most = FIRST + 1
	for (i = FIRST + 2; i <= LAST; i++)
		if (step(size, i) > step(size, most))
			most = i
	printf "  %s: the meter says %.2fx of perf; most of that (%.2fx) is %s\n", size_words(size),
		figure[size, LAST] / figure[size, FIRST], figure[size, most] / figure[size, most - 1], reason[most]
}

BEGIN {
	FIRST = 3
	LAST = 9
	reason[4] = "another process: the same code, other pages, another moment"
	reason[5] = "time that other processes took, which perf counts as clearing: this host is busy"
	reason[6] = "the value: perf fills with its loop counter, the kernel with zeros, which this CPU writes in another way"
	reason[7] = "the buffer's place: perf's comes from calloc and begins 16 bytes into a line, programs and the meter have aligned ones (newer perf maps its own)"
	reason[8] = "huge pages: perf's buffer has them only where transparent_hugepage is `always`, the meter asks for them from 2 MiB up"
	reason[9] = "what was before: perf overwrites in one loop what the same memset left in the caches, the meter makes the target dirty by ordinary stores before every clear, at changing places, and drops disturbed samples"
	printf "%-8s %9s %9s %6s %9s %9s %9s %9s %9s %6s\n", "size", "perf", "same loop", "ratio", "CPU time", "zeros", "aligned",
		"pages", "meter", "ratio"
}

{
	if (!($1 in runs))
		order[++sizes] = $1
	runs[$1]++
	for (i = FIRST; i <= LAST; i++)
		seen[$1, i, runs[$1]] = $i
}

END {
	if (sizes == 0) {
		print "no figures"
		exit 1
	}
	for (s = 1; s <= sizes; s++) {
		size = order[s]
		for (i = FIRST; i <= LAST; i++)
			figure[size, i] = median(size, i)
		metered = figure[size, LAST] != "-"
		printf "%-8s %9.2f %9.2f %6.2f %9.2f %9.2f %9.2f %9.2f %9s %6s\n", size_words(size), figure[size, 3],
			figure[size, 4], figure[size, 4] / figure[size, 3], figure[size, 5], figure[size, 6], figure[size, 7],
			figure[size, 8], metered ? sprintf("%.2f", figure[size, LAST]) : "-",
			metered ? sprintf("%.2f", figure[size, LAST] / figure[size, FIRST]) : "-"
		if (beyond(figure[size, 5] / figure[size, 4]))
			busy = 1
	}
	printf "medians of %d interleaved runs, GB/s (10^9 bytes a second); ratios are ours over perf's\n", runs[order[1]]
	if (busy)
		print "! this host was busy: the loops had to share the CPU, and perf's figures say so too"
	for (s = 1; s <= sizes; s++) {
		size = order[s]
		if (beyond(figure[size, 4] / figure[size, 3]))
			printf "  %s: the same loop is %.2fx of perf's: it is the same code, so %s\n", size_words(size),
				figure[size, 4] / figure[size, 3],
				busy ? "the two got different shares of the CPU" : "the OS gave it other pages, or another moment of the shared caches; run it again"
		if (figure[size, LAST] == "-")
			printf "  %s: each of the meter's samples was disturbed, and dropped\n", size_words(size)
		else if (beyond(figure[size, LAST] / figure[size, FIRST]))
			explain(size)
	}
}
