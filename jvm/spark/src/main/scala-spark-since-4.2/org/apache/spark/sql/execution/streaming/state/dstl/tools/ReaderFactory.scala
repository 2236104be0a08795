package org.apache.spark.sql.execution.streaming.state.dstl.tools

import org.apache.spark.sql.connector.read.PartitionReaderFactory
import org.apache.spark.sql.execution.datasources.v2.state.StatePartitionReaderFactory
import org.apache.spark.sql.types.StructType

/** What makes Spark's readers of state, in a form that no line of Spark changes. */
private[tools] object ReaderFactory {

  def of(read: ReadBatch, table: StoredTable, schema: StructType): PartitionReaderFactory =
    new StatePartitionReaderFactory(
      read.storeConf,
      read.serializable,
      schema,
      table.encoder,
      table.variable,
      Some(table.family),
      table.schemas,
      table.familyOfMany,
      None
    )
}
