#include "runtime/os/epoch.h"

struct epoch epoch;
