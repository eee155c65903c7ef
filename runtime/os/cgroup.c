// cgroup.c - finds the groups of the process, and reads the limits of each.
#include "runtime/os/cgroup.h"

#include <string.h>

#include "runtime/os/oscall.h"
#include "runtime/os/options.h"

enum {
	MEMBERSHIP_MAX = 4096, // bytes of the file that are read
	PATH_MAX_BYTES = 1024, // a file with a longer path is not read
	LIMIT_MAX = 64,	       // bytes of a file with a limit
	MEMORY_PART = 90,      // percent of the memory limit
};

// The path of a directory or of a file in it.  A path that does not fit is bad.
struct path {
	char text[PATH_MAX_BYTES];
	size_t len;
	bool bad;
};

static void path_add(struct path *p, const char *s, size_t n)
{
	if (p->bad || n >= sizeof p->text - p->len) {
		p->bad = true;
		return;
	}
	memcpy(p->text + p->len, s, n);
	p->len += n;
	p->text[p->len] = 0;
}

// read_text reads the beginning of a file in a directory, and returns its first
// line.  Returns an empty text if the file cannot be read, or if the line does
// not end within LIMIT_MAX bytes.
static struct options_text read_text(struct path *dir, const char *name,
				     char text[LIMIT_MAX])
{
	struct path p = *dir;
	const char *end;
	size_t n;

	path_add(&p, name, strlen(name));
	n = p.bad ? 0 : oscall_read_file(p.text, text, LIMIT_MAX);
	end = n != 0 ? memchr(text, '\n', n) : NULL;
	return (struct options_text){text, end ? (size_t)(end - text) : 0};
}

// take_word takes the text up to the next blank off the front of *rest.
static struct options_text take_word(struct options_text *rest)
{
	const char *blank = rest->len ? memchr(rest->s, ' ', rest->len) : NULL;
	struct options_text word = {rest->s, blank ? (size_t)(blank - rest->s)
						   : rest->len};
	size_t taken = word.len + (blank != NULL);

	rest->s += taken;
	rest->len -= taken;
	return word;
}

static void lower(uint64_t *limit, uint64_t to)
{
	*limit = base_min(*limit, to);
}

// lower_cpus lowers the limit to quota us of processor time in each period us.
static void lower_cpus(struct cgroup *c, struct options_text quota,
		       struct options_text period)
{
	int64_t q, p;

	if (options_integer(quota, &q) && options_integer(period, &p) &&
	    q > 0 && p > 0)
		lower(&c->cpus, (uint64_t)q / (uint64_t)p +
				    ((uint64_t)q % (uint64_t)p != 0));
}

// If there is no limit, the file of version 1 holds the largest number of whole
// pages, which is above INT64_MAX / 2.
static void lower_memory(struct cgroup *c, struct options_text bytes)
{
	int64_t n;

	if (options_integer(bytes, &n) && n >= 0 && n <= INT64_MAX / 2)
		lower(&c->memory, (uint64_t)n / 100 * MEMORY_PART);
}

static void read_v2(struct path *dir, struct cgroup *c)
{
	char text[LIMIT_MAX];
	struct options_text line = read_text(dir, "/cpu.max", text);
	struct options_text quota = take_word(&line);

	lower_cpus(c, quota, line);
	lower_memory(c, read_text(dir, "/memory.max", text));
	lower_memory(c, read_text(dir, "/memory.high", text));
}

static void read_cpus_v1(struct path *dir, struct cgroup *c)
{
	char quota[LIMIT_MAX], period[LIMIT_MAX];

	lower_cpus(c, read_text(dir, "/cpu.cfs_quota_us", quota),
		   read_text(dir, "/cpu.cfs_period_us", period));
}

static void read_memory_v1(struct path *dir, struct cgroup *c)
{
	char text[LIMIT_MAX];

	lower_memory(c, read_text(dir, "/memory.limit_in_bytes", text));
}

// has_word tells whether word is one of the words of a list, which are
// separated by commas.
static bool has_word(struct options_text list, const char *word)
{
	struct options_item item;

	while (options_next(&list, &item))
		if (options_is(item.name, word))
			return true;
	return false;
}

// read_levels reads the limits of a group and of all groups around it.  If the
// name leads upwards, the group cannot be seen from here.
static void read_levels(const char *root, const char *mount,
			struct options_text group, struct cgroup *c)
{
	struct path dir = {.len = 0};
	size_t top;

	path_add(&dir, root, strlen(root));
	path_add(&dir, mount, strlen(mount));
	top = dir.len;
	path_add(&dir, group.s, group.len);
	if (dir.bad || strstr(dir.text + top, "/.."))
		return;
	for (;;) {
		if (strcmp(mount, "/cpu") == 0)
			read_cpus_v1(&dir, c);
		else if (strcmp(mount, "/memory") == 0)
			read_memory_v1(&dir, c);
		else
			read_v2(&dir, c);
		if (dir.len == top)
			return;
		while (dir.len > top && dir.text[dir.len - 1] != '/')
			dir.len--;
		if (dir.len > top)
			dir.len--; // the slash
		dir.text[dir.len] = 0;
	}
}

// take_part takes the text up to a colon off the front of *rest.
static bool take_part(struct options_text *rest, struct options_text *part)
{
	const char *colon = rest->len ? memchr(rest->s, ':', rest->len) : NULL;

	if (!colon)
		return false;
	*part = (struct options_text){rest->s, (size_t)(colon - rest->s)};
	rest->len -= part->len + 1;
	rest->s = colon + 1;
	return true;
}

// read_group reads the limits of the groups that one line names.  The line has
// the number of a tree of groups, what the tree controls, and the name of the
// group.
static void read_group(const char *root, struct options_text line,
		       struct cgroup *c)
{
	struct options_text number, controls;

	if (!take_part(&line, &number) || !take_part(&line, &controls) ||
	    line.len == 0 || line.s[0] != '/')
		return;
	if (controls.len == 0)
		read_levels(root, "", line, c);
	if (has_word(controls, "cpu"))
		read_levels(root, "/cpu", line, c);
	if (has_word(controls, "memory"))
		read_levels(root, "/memory", line, c);
}

void cgroup_read(const char *membership, const char *root, struct cgroup *c)
{
	char text[MEMBERSHIP_MAX];
	size_t n = oscall_read_file(membership, text, sizeof text);
	const char *s = text, *end;

	*c = (struct cgroup){CGROUP_NO_LIMIT, CGROUP_NO_LIMIT};
	// A line without an end was cut off.
	while (n != 0 && (end = memchr(s, '\n', n)) != NULL) {
		struct options_text line = {s, (size_t)(end - s)};

		read_group(root, line, c);
		n -= line.len + 1;
		s = end + 1;
	}
}

void cgroup_self(struct cgroup *c)
{
	cgroup_read("/proc/self/cgroup", "/sys/fs/cgroup", c);
}
