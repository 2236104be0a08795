// SPDX-License-Identifier: Apache-2.0
package sparkdstl

/** The durable short-term log: protocol, file format, storage, uploads and reads. Independent of Spark. */
package object log
