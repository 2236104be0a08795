package org.apache.spark.sql.execution.streaming.state.dstl.tools

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType

/** Rows of one schema, to be iterated over once; closing them lets go of the stores they come from. */
private[tools] trait Rows {
  def schema: StructType

  /** The rows of a partition. A row is valid until the next is asked for. */
  def of(partition: Int)(use: Iterator[InternalRow] => Unit): Unit
}
