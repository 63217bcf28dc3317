// Prints a result with every field set, or the reason codes: what check_schema.py holds the schemas to.
#include <cstdio>
#include <string>

#include "harness/record/json.h"
#include "tests/harness/record/full_result.h"

int main(int argc, char** argv) {
  using namespace warmleg::record;
  std::string text;
  if (argc > 1 && std::string(argv[1]) == "--codes")
    for (const CodeInfo& info : AllCodes()) text.append(info.name).append("\n");
  else
    text = Dump(ToJson(FullResult()));
  return std::fputs(text.c_str(), stdout) < 0;
}
