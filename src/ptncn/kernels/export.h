/* Functions that a library on Windows offers; elsewhere all that are not static are. */
#ifndef PTNCN_EXPORT_H
#define PTNCN_EXPORT_H

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT
#endif

#endif
