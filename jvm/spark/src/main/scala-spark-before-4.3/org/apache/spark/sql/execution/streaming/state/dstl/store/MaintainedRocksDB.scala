package org.apache.spark.sql.execution.streaming.state.dstl.store

import org.apache.spark.sql.execution.streaming.state.RocksDB

/** How Spark's RocksDB gets column families and is maintained, in a form that no line of Spark changes. */
private[store] trait MaintainedRocksDB extends RocksDB {

  /** Told before a column family of that name is made, if it is not there, which a snapshot of the version must show. */
  protected def beforeColumnFamily(name: String): Unit

  /** Told before Spark uploads snapshots in the background. */
  protected def beforeUploads(): Unit

  override def createColFamilyIfAbsent(colFamilyName: String, isInternal: Boolean): Short = {
    beforeColumnFamily(colFamilyName)
    super.createColFamilyIfAbsent(colFamilyName, isInternal)
  }

  override def doMaintenance(): Unit = {
    beforeUploads()
    super.doMaintenance()
  }
}
