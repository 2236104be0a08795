// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import org.apache.spark.sql.execution.streaming.state.{RecordType, RocksDB}

/** Applies a record of a changelog to a database, as Spark's replay does. */
private[tools] object ReplayShims {

  def apply(to: RocksDB, families: Boolean, kind: RecordType.Value, key: Array[Byte], value: Array[Byte]): Unit =
    kind match {
      case RecordType.PUT_RECORD =>
        to.put(key, value, includesPrefix = families, deriveCfName = families, includesChecksum = sums(to))
      case RecordType.DELETE_RECORD =>
        to.remove(key, includesPrefix = families, deriveCfName = families, includesChecksum = sums(to))
      case RecordType.MERGE_RECORD =>
        to.merge(key, value, includesPrefix = families, deriveCfName = families, includesChecksum = sums(to))
      case RecordType.DELETE_RANGE_RECORD =>
        to.deleteRange(key, value, includesPrefix = families, includesChecksum = sums(to))
      case other => throw new IllegalStateException(s"a changelog has a record of the unknown type $other")
    }

  private def sums(of: RocksDB): Boolean = of.conf.rowChecksumEnabled
}
