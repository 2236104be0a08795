package sparkdstl

/** The durable short-term log: file format, storage, uploads, reading. Knows nothing of Spark. */
package object log
