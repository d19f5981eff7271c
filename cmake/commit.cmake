# cmake -DSOURCE=DIRECTORY -DHEADER=FILE -P commit.cmake: writes the commit of the source to HEADER, if it changed.
#
# In a clone of git it is the commit, with `-modified` if tracked files differ from it. In an archive of `git archive`
# it is in cmake/commit.txt, where git fills it in. Else it is `unknown`.
cmake_minimum_required(VERSION 3.22)
set(commit unknown)
find_program(GIT git)
# The build may run as root in a clone of another user.
set(git ${CMAKE_COMMAND} -E env GIT_OPTIONAL_LOCKS=0 ${GIT} -c safe.directory=* -c core.fsmonitor=false -C ${SOURCE})
if(GIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${git} rev-parse --short=12 HEAD OUTPUT_VARIABLE out RESULT_VARIABLE status
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(status EQUAL 0)
    set(commit ${out})
    execute_process(COMMAND ${git} status --porcelain --untracked-files=no OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      string(APPEND commit -modified)
    endif()
  endif()
else()
  file(READ ${SOURCE}/cmake/commit.txt out)
  if(out MATCHES "^([0-9a-f]+)\n")
    string(SUBSTRING ${CMAKE_MATCH_1} 0 12 commit)
  endif()
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#pragma once\n\n#define ESPY_COMMIT \"${commit}\"\n" @ONLY)
