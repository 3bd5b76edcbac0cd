/* Exported functions of a library on Windows; elsewhere all functions that are not static are exported. */
#ifndef PTNCN_EXPORT_H
#define PTNCN_EXPORT_H

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT
#endif

#endif
