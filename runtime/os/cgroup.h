// cgroup.h - the limits of the process's control groups.
//
// Go: internal/runtime/cgroup, which does not read the limits of memory.
//
// The limit of a group holds for the groups in it, so the least of all levels
// counts.  A file that cannot be read, or makes no sense, is no limit.
#ifndef RUNTIME_OS_CGROUP_H
#define RUNTIME_OS_CGROUP_H

#include "runtime/base/base.h"

#define CGROUP_NO_LIMIT (~UINT64_C(0))

struct cgroup {
	uint64_t cpus;	 // processors' worth of time, rounded up
	uint64_t memory; // bytes: 90 percent of the least limit
};

// cgroup_read reads both limits.  With version 2 they are in the files cpu.max,
// memory.max and memory.high.  With version 1 they are cpu.cfs_quota_us divided
// by cpu.cfs_period_us, and memory.limit_in_bytes.  membership is the file with
// the names of the groups, root the directory in which the groups are.
void cgroup_read(const char *membership, const char *root, struct cgroup *c);

// cgroup_self reads the limits of this process, in the places where Linux keeps
// them.
void cgroup_self(struct cgroup *c);

#endif
