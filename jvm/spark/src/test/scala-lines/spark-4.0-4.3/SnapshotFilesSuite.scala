// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files
import java.util.zip.{ZipEntry, ZipOutputStream}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.config.LogOptions
import sparkdstl.log.read.StoreLoad
import sparkdstl.testing.TemporaryDirectory

import org.apache.spark.sql.execution.streaming.state.dstl.DstlEnvironment
import org.apache.spark.sql.execution.streaming.state.dstl.store.SnapshotFiles

class SnapshotFilesSuite extends AnyFunSuite {

  for (
    names <- Seq(
      """{"localFileName":"1.sst","dfsSstFileName":"../../../2.sst"""",
      """{"localFileName":"../1.sst","dfsSstFileName":"2.sst""""
    )
  )
    test(s"a snapshot that names an outside file is damaged and not fetched: $names")(TemporaryDirectory.within {
      root =>
        val directory = root.toPath
        val snapshot = directory.resolve("state/0/0/3.zip")
        Files.createDirectories(snapshot.getParent)
        val zip = new ZipOutputStream(Files.newOutputStream(snapshot))
        zip.putNextEntry(new ZipEntry("metadata"))
        zip.write(s"""v1\n{"sstFiles":[$names,"sizeBytes":3}],"numKeys":1}""".getBytes(UTF_8))
        zip.close()
        val configuration = new Configuration
        val store = new Path(snapshot.getParent.toUri)
        val files = new SnapshotFiles(store, configuration, LogOptions.default, DstlEnvironment.get.resources, None)
        val local = Files.createDirectories(directory.resolve("local/working"))
        val error = intercept[Exception] {
          val load = new StoreLoad(None, None)
          files.loading(load, new Path(snapshot.toUri), Files.readAllBytes(snapshot), isVerified = true, local.toFile)(
            (file, to) => files.downloadOf(new Path(store, file.dfsFileName), file.sizeBytes, to)
          )(_ => fail("it was loaded"))
        }
        assert(error.getMessage.contains("3.zip") && error.getMessage.contains(".sst"), error)
        assert(local.getParent.toFile.list().toSeq == Seq("working"))
    })
}
