# SPDX-License-Identifier: Apache-2.0
# The files of this folder become a table in the program: -DFOLDER=… -DOUT=… writes {template, file, text} rows.
# What lies in the folder itself belongs to each template whose files name it.
file(GLOB files RELATIVE ${FOLDER} ${FOLDER}/*/*.yaml ${FOLDER}/*/*.py ${FOLDER}/*.py)
list(SORT files)
set(rows "")
foreach(file ${files})
  file(READ ${FOLDER}/${file} text)
  string(FIND "${text}" ")TEMPLATE\"" bad)
  if(NOT bad EQUAL -1)
    message(FATAL_ERROR "${file} holds the mark that ends its text")
  endif()
  get_filename_component(template ${file} DIRECTORY)
  get_filename_component(name ${file} NAME)
  string(APPEND rows "{\"${template}\", \"${name}\", R\"TEMPLATE(${text})TEMPLATE\"},\n")
endforeach()
file(WRITE ${OUT} "${rows}")
