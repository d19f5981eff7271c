# `espy_embed(HEADER CONSTANT FILE)`: generates HEADER, in which the std::string_view CONSTANT is the text of FILE.
#
# A line `{{NAME}}` in FILE, where NAME is a file beside it, stands for the text of that file. Other names in braces stay
# for the program, which gives them values (`fill`, base/strings.h). CMake writes the header, and runs again when a file
# has changed.
function(espy_embed header constant file)
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  cmake_path(GET file PARENT_PATH folder)
  file(READ "${file}" text)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  string(REGEX MATCHALL "{{[a-z_]+\\.[a-z]+}}" parts "${text}")
  foreach(part ${parts})
    string(REGEX REPLACE "[{}]" "" name "${part}")
    file(READ "${folder}/${name}" part_text)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${folder}/${name}")
    string(REPLACE "${part}\n" "${part_text}" text "${text}")
  endforeach()
  string(CONCAT content "#pragma once\n\n#include <string_view>\n\n"
         "inline constexpr std::string_view ${constant} = R\"embedded(${text})embedded\";\n")
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/generated/${header}" CONTENT "@content@" @ONLY)
endfunction()
