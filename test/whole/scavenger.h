// scavenger.h - what tests of the background thread share.
#ifndef TEST_WHOLE_SCAVENGER_H
#define TEST_WHOLE_SCAVENGER_H

#include "gc/cycle/scavenger.h"
#include "test/harness/fault.h"
#include "test/harness/mib.h"

#define SECOND UINT64_C(1000000000)

#endif
