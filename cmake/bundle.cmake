# `espy_bundle(HEADER CONSTANT FILE...)`: generates HEADER, in which the byte array CONSTANT holds the files, each
# compressed by gzip, and the array CONSTANTIndex has a line {PATH, OFFSET, COMPRESSED SIZE, SIZE} for each file, in the
# order of the arguments. CMake writes the header, and runs again when a file has changed. cli/bundled_files.cc reads it.
function(espy_bundle header constant)
  set(bundle "${CMAKE_BINARY_DIR}/generated/${header}.bundle")
  file(WRITE "${bundle}.new" "")
  foreach(file ${ARGN})
    file(READ "${CMAKE_CURRENT_SOURCE_DIR}/${file}" text)
    file(APPEND "${bundle}.new" "${file}\n${text}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  endforeach()
  if(EXISTS "${bundle}" AND EXISTS "${CMAKE_BINARY_DIR}/generated/${header}")
    file(SHA256 "${bundle}" old_sum)
    file(SHA256 "${bundle}.new" new_sum)
    if(old_sum STREQUAL new_sum)
      file(REMOVE "${bundle}.new")
      return()
    endif()
  endif()
  set(offset 0)
  set(all "")
  set(index "")
  foreach(file ${ARGN})
    file(ARCHIVE_CREATE OUTPUT "${bundle}.gz" PATHS "${CMAKE_CURRENT_SOURCE_DIR}/${file}" FORMAT raw COMPRESSION GZip
         COMPRESSION_LEVEL 9)
    file(READ "${bundle}.gz" bytes HEX)
    file(SIZE "${bundle}.gz" compressed)
    file(SIZE "${CMAKE_CURRENT_SOURCE_DIR}/${file}" size)
    # The header of gzip has the time of the build in bytes 4 to 7 (RFC 1952): two builds shall be equal.
    string(SUBSTRING "${bytes}" 0 8 start)
    string(SUBSTRING "${bytes}" 16 -1 rest)
    string(APPEND all "${start}00000000${rest}")
    string(APPEND index "    {\"${file}\", ${offset}, ${compressed}, ${size}},\n")
    math(EXPR offset "${offset} + ${compressed}")
  endforeach()
  string(REGEX REPLACE "(..)" "0x\\1," all "${all}")
  string(CONCAT content "#pragma once\n\n#include <cstddef>\n#include <string_view>\n\n"
         "struct EmbeddedFile {\n  std::string_view path;\n  std::size_t offset, compressed_bytes, bytes;\n};\n"
         "inline constexpr EmbeddedFile ${constant}Index[] = {\n${index}};\n"
         "inline constexpr unsigned char ${constant}[] = {${all}};\n")
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/generated/${header}" CONTENT "@content@" @ONLY)
  file(RENAME "${bundle}.new" "${bundle}")
endfunction()
